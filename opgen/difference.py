"""Two texts that should agree, one above the other, with marks under the first place where they do not.

For signatures and schemas in the hints of diagnostics: lines are folded so that they fit on a terminal of 80 columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opgen.cpp import canonical_parameter, canonical_type, top_level_spans

__all__ = ["Difference", "Span", "default_argument", "marked", "shown", "signature_difference", "text_difference"]

# Longer texts are not shown whole, but this much before and behind the place.
_WHOLE = 4000
_AROUND = 300
# Hints are indented by four.
_WIDTH = 76
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|->|::|\S")

Span = tuple[int, int]
"""From and until, as in a slice."""


@dataclass(frozen=True)
class Difference:
    """The first difference: in words, and where it stands in either text."""

    reason: str
    written: Span
    required: Span


def shown(written: str, required: str, difference: Difference | None, second: str = "required") -> str:
    """Both texts, `written:` first, the difference marked in each."""
    width = max(len("written"), len(second)) + 2
    return "\n".join(
        [
            *marked("written:".ljust(width), written, difference.written if difference else None),
            *marked(f"{second}:".ljust(width), required, difference.required if difference else None),
        ]
    )


def marked(label: str, text: str, span: Span | None) -> list[str]:
    """`label` and `text`, folded at its blanks, with carets under `span` (one caret for an empty span)."""
    if span is not None and len(text) > _WHOLE:
        # Of a text of many pages only the surroundings of the place are of use.
        first, last = max(span[0] - _AROUND, 0), min(span[0] + _AROUND, len(text))
        before, after = "... " * (first > 0), " ..." * (last < len(text))
        by = len(before) - first
        return marked(label, before + text[first:last] + after, (span[0] + by, min(span[1], last) + by))
    lines: list[str] = []
    start = 0
    for end in _folds(text, _WIDTH - len(label)):
        lines.append((label if start == 0 else " " * len(label)) + text[start:end].rstrip())
        if span is not None and start <= span[0] and (span[0] < end or end == len(text)):
            carets = max(min(span[1], len(text[:end].rstrip())) - span[0], 1)
            lines.append(" " * (len(label) + span[0] - start) + "^" * carets)
        start = end
    return lines


def _folds(text: str, width: int) -> list[int]:
    """Where the lines of `text` end. A line breaks behind a comma if it can, else at a blank, else nowhere."""
    ends = []
    start = 0
    while len(text) - start > width:
        breaks = [m.end() for m in re.finditer(r", ", text[start : start + width + 1])]
        breaks = breaks or [m.end() for m in re.finditer(r" ", text[start : start + width + 1])]
        if not breaks:
            following = text.find(" ", start + width)
            if following < 0:
                break
            breaks = [following + 1 - start]
        start += breaks[-1]
        ends.append(start)
    return [*ends, len(text)]


def text_difference(written: str, required: str) -> Difference | None:
    """The first word or sign that differs, white space apart; None where the texts say the same."""
    ours, theirs = list(_TOKEN.finditer(written)), list(_TOKEN.finditer(required))
    for mine, other in zip(ours, theirs, strict=False):
        if mine.group() != other.group():
            return Difference(f"'{mine.group()}' instead of '{other.group()}'", mine.span(), other.span())
    if len(ours) > len(theirs):
        more = ours[len(theirs)]
        return Difference(f"'{more.group()}' is too much", more.span(), (len(required), len(required)))
    if len(theirs) > len(ours):
        missing = theirs[len(ours)]
        return Difference(f"'{missing.group()}' is missing", (len(written), len(written)), missing.span())
    return None


def signature_difference(written: str, required: str, *, returns: bool = True) -> Difference | None:
    """The first parameter that differs, else (with `returns`) the return type. None where no difference shows.

    Both texts are C++ declarators without body; a macro such as TORCH_IMPL_FUNC(K) may stand before the parameters.
    """
    ours, theirs = _parameters(written), _parameters(required)
    if ours is None or theirs is None:
        return None
    difference = _parameter_difference((written, ours), (required, theirs))
    if difference is not None or not returns:
        return difference
    mine, other = _return_type(written, ours), _return_type(required, theirs)
    types = canonical_type(written[slice(*mine)]), canonical_type(required[slice(*other)])
    if types[0] == types[1]:
        return None
    return Difference(f"it returns '{types[0]}', not '{types[1]}'", mine, other)


def default_argument(declaration: str) -> Span | None:
    """The first parameter of a C++ declarator that has a default argument."""
    parameters = _parameters(declaration)
    for start, end in parameters[1] if parameters is not None else ():
        if len(top_level_spans(declaration, start, end, "=")) > 1:
            return start, end
    return None


def _parameter_difference(
    written: tuple[str, tuple[Span, Sequence[Span]]], required: tuple[str, tuple[Span, Sequence[Span]]]
) -> Difference | None:
    (text, (parentheses, ours)), (expected, (other_parentheses, theirs)) = written, required
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        types = canonical_parameter(text[slice(*mine)]), canonical_parameter(expected[slice(*other)])
        if types[0] != types[1]:
            return Difference(f"parameter {number} is '{types[0]}', not '{types[1]}'", mine, other)
    end, other_end = parentheses[1], other_parentheses[1]
    if len(ours) > len(theirs):
        return Difference(f"parameter {len(theirs) + 1} is too much", ours[len(theirs)], (other_end, other_end + 1))
    if len(theirs) > len(ours):
        missing = theirs[len(ours)]
        name = canonical_parameter(expected[slice(*missing)])
        return Difference(f"parameter {len(ours) + 1}, '{name}', is missing", (end, end + 1), missing)
    return None


def _parameters(text: str) -> tuple[Span, list[Span]] | None:
    """The inside of the last pair of parentheses, and each parameter in it."""
    depth = 0
    end = text.rfind(")")
    for position in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0 and end >= 0:
            inside = (position + 1, end)
            spans = top_level_spans(text, *inside)
            return inside, [] if [text[slice(*span)] for span in spans] == ["void"] else spans
    return None


def _return_type(text: str, parameters: tuple[Span, Sequence[Span]]) -> Span:
    """What stands before the name, or behind `->`."""
    (start, end), _ = parameters
    arrow = text.find("->", end)
    if arrow >= 0:
        return arrow + 2 + (len(text[arrow + 2 :]) - len(text[arrow + 2 :].lstrip())), len(text.rstrip())
    head = re.match(r"(.*?)\s*(?:[A-Za-z_]\w*\s*::\s*)*[A-Za-z_]\w*\s*\($", text[:start], re.DOTALL)
    return (0, len(head[1])) if head is not None else (0, 0)
