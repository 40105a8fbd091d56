"""The matrix as a picture: a bar for each namespace and each kernel family, coloured by standing. SVG, no script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from opgen.coverage.rows import Row, Standing, by_standing

__all__ = ["chart"]

_COLOURS = {
    Standing.STRICT: ("#2a9d5c", "#2f9e60"),
    Standing.PARTIAL: ("#d99a10", "#c58d1b"),
    Standing.FAILED: ("#cc3b3b", "#d05050"),
    Standing.UNTESTED: ("#9aa5b1", "#6c7885"),
    Standing.MISSING: ("#d5dbe2", "#39434e"),
}
"""Light and dark; the README's reader decides which is seen."""

_WIDTH, _LINE, _LABEL, _NUMBER = 760, 22, 130, 52


def chart(rows: Sequence[Row]) -> str:
    """Lengths are shares of the largest group, so that areas are counts. Byte-identical for equal rows."""
    whole = by_standing(rows, lambda _: "").get("", Counter())
    body, y = [_legend(whole)], 44
    groups = (
        ("by namespace", by_standing(rows, lambda row: row.namespace)),
        ("by kernel family", by_standing(rows, lambda row: row.family or row.state.value)),
    )
    for title, counted in groups:
        body.append(f'<text x="0" y="{y}" class="soft">{title}</text>')
        y += 10
        largest = max((counts.total() for counts in counted.values()), default=1)
        for name, counts in counted.items():
            body.append(_bar(name, counts, largest, y))
            y += _LINE
        y += 22
    says = ", ".join(f"{count} {standing.value}" for standing, count in _present(whole))
    light = "".join(f".{s.value}{{fill:{colours[0]}}}" for s, colours in _COLOURS.items())
    dark = "".join(f".{s.value}{{fill:{colours[1]}}}" for s, colours in _COLOURS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y - 18}" role="img" '
        f'aria-label="Operator coverage: {says}">\n<style>'
        f"text{{font:13px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#17202a}}.soft{{fill:#5b6673}}{light}"
        f"@media(prefers-color-scheme:dark){{text{{fill:#e4e9ee}}.soft{{fill:#98a4b1}}{dark}}}</style>\n"
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _bar(name: str, counts: Mapping[Standing, int], largest: int, y: int) -> str:
    total = sum(counts.values())
    room = _WIDTH - _LABEL - _NUMBER
    parts, x = [], float(_LABEL)
    for standing, count in _present(counts):
        width = room * count / largest
        says = f"{name}: {count} {standing.value}"
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{max(width - 1, 0.5):.1f}" height="14" rx="2" class="{standing.value}">'
            f"<title>{escape(says)}</title></rect>"
        )
        x += width
    label = f'<text x="{_LABEL - 10}" y="{y + 11.5}" text-anchor="end">{escape(name)}</text>'
    return f'{label}{"".join(parts)}<text x="{x + 6:.1f}" y="{y + 11.5}" class="soft">{total:,}</text>'


def _legend(counts: Mapping[Standing, int]) -> str:
    parts, x = [], 0
    for standing, count in _present(counts):
        parts.append(f'<rect x="{x}" y="4" width="12" height="12" rx="3" class="{standing.value}"/>')
        parts.append(f'<text x="{x + 18}" y="14.5">{standing.value} {count:,}</text>')
        x += 130
    return "".join(parts)


def _present(counts: Mapping[Standing, int]) -> list[tuple[Standing, int]]:
    return [(standing, counts[standing]) for standing in Standing if counts.get(standing)]
