"""A badge for a README: how much of the denominator is STRICT or, where nothing has been run, registered."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from opgen.coverage.rows import Standing

__all__ = ["badge"]

# Red below half, amber below four fifths.
_COLOURS = ((0.8, "#2a9d5c"), (0.5, "#b7791f"), (0.0, "#c23b3b"))
_CHARACTER = 6.6
_PADDING = 10
_WORD = Standing.STRICT.value


def badge(label: str, part: int, whole: int, word: str = _WORD) -> str:
    """The badge as SVG, 20 pixels high; every renderer fits the text to the same width."""
    share = part / whole if whole else 0.0
    colour = next(colour for least, colour in _COLOURS if share >= least)
    value = f"{share:.0%} {word}"
    left, right = (round(len(text) * _CHARACTER + 2 * _PADDING) for text in (label, value))
    title = f"{label}: {part:,} of {whole:,} overloads {word}"

    def text(words: str, start: int, width: int) -> str:
        return (
            f'<text x="{start + _PADDING}" y="14" textLength="{width - 2 * _PADDING}" '
            f'lengthAdjust="spacingAndGlyphs">{escape(words)}</text>'
        )

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f"aria-label={quoteattr(title)}><title>{escape(title)}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="20" fill="#3d4650"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{text(label, 0, left)}{text(value, left, right)}</g></svg>\n"
    )
