"""From offsets in a text to lines and columns, as diagnostics have them."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from opgen.diagnostics import Diagnostic, Location, Severity


class Places:
    """Lines and columns (in bytes) of one text of `as_bytes`."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._text = text

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        at = self._text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self._text.find("\n", at + 1)
        return starts

    def location(self, start: int, end: int) -> Location:
        line = bisect_right(self._line_starts, start)
        last = bisect_right(self._line_starts, end)
        return Location(
            self.path,
            line,
            start - self._line_starts[line - 1] + 1,
            last,
            end - self._line_starts[last - 1] + 1,
        )

    def error(self, start: int, end: int, message: str, hint: str | None = None) -> Diagnostic:
        return Diagnostic(Severity.ERROR, self.location(start, end), message, hint)

    def warning(self, start: int, end: int, message: str, hint: str | None = None) -> Diagnostic:
        return Diagnostic(Severity.WARNING, self.location(start, end), message, hint)
