"""What opgen has to say about the user's files: `path:line:column: error: message`, and how to mend it.

Every check reports into a `Diagnostics` collector and goes on, so that one run shows all that is wrong. Only what
makes going on impossible (an unreadable file, a full disk) is an `OpgenError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """How bad a diagnostic is. Only errors stop generation."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True)
class Location:
    """A place in a text file; line and column count from 1, and 0 means "the file as a whole"."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.path]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


@dataclass(frozen=True)
class Diagnostic:
    """One finding: where, what, and (in `hint`) what to do about it. A hint may have several lines."""

    severity: Severity
    location: Location
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.location}: {self.severity.value}: {self.message}"
        if self.hint is None:
            return text
        return "\n".join([text, *(f"    {line}" for line in self.hint.splitlines())])


class OpgenError(Exception):
    """A failure the user can act on; the CLI prints it without a traceback and exits with 1."""

    def __init__(self, message: str, location: Location | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location is not None else ""
        text = f"{prefix}error: {self.message}"
        if self.hint is None:
            return text
        return "\n".join([text, *(f"    {line}" for line in self.hint.splitlines())])


@dataclass
class Diagnostics:
    """Collects diagnostics; the only mutable object that passes through opgen's pure functions."""

    items: list[Diagnostic] = field(default_factory=list)

    def error(self, location: Location, message: str, hint: str | None = None) -> None:
        self._add(Diagnostic(Severity.ERROR, location, message, hint))

    def warning(self, location: Location, message: str, hint: str | None = None) -> None:
        self._add(Diagnostic(Severity.WARNING, location, message, hint))

    def _add(self, item: Diagnostic) -> None:
        # The same fault is often met from two sides (an entry and its group); say it once.
        if item not in self.items:
            self.items.append(item)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.items if d.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.items if d.severity is Severity.WARNING)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __iter__(self) -> Iterator[Diagnostic]:
        """In the order of the text, as an editor or a reader wants them."""
        return iter(sorted(self.items, key=lambda d: d.location))


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The spelling among `known` closest to `word`, or None where nothing is close."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint line for a misspelt word, or None."""
    match = nearest(word, known)
    return f"did you mean '{match}'?" if match is not None else None
