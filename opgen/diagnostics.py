"""What opgen has to say about the user's files: `path:line:column: error: message`, and how to mend it.

Every check reports into a `Diagnostics` collector and goes on, so that one run shows all that is wrong. Only what
makes going on impossible (an unreadable file, a full disk) is an `OpgenError`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any


class Severity(Enum):
    """How bad a diagnostic is. Only errors stop generation."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True)
class Location:
    """A place in a text file; lines and columns count from 1, and 0 means "the file as a whole"."""

    path: str
    line: int = 0
    column: int = 0
    end_line: int = field(default=0, compare=False)
    end_column: int = field(default=0, compare=False)
    """Behind the last character, where it is known. Two places that begin alike are the same place."""

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
        return _text(self.location if self.location.path else None, self.severity, self.message, self.hint)


def as_record(item: Diagnostic) -> dict[str, object]:
    """One diagnostic as JSON has it. Lines and columns count from 1, `end_column` is the one behind the last character;
    what is not known is null."""
    where = item.location
    return {
        "severity": item.severity.value,
        "path": where.path or None,
        "line": where.line or None,
        "column": where.column or None,
        "end_line": where.end_line or None,
        "end_column": where.end_column or None,
        "message": item.message,
        "hint": item.hint,
    }


def from_record(record: dict[str, Any]) -> Diagnostic:
    """The inverse of `as_record`. Raises KeyError, TypeError or ValueError for anything else."""
    numbers = (int(record[key] or 0) for key in ("line", "column", "end_line", "end_column"))
    return Diagnostic(
        Severity(record["severity"]), Location(str(record["path"] or ""), *numbers), record["message"], record["hint"]
    )


_LONGEST_WORD = 200


def shown(text: str) -> str:
    """One line of a message as it may be shown: what the user's file has in it neither breaks the line, nor reaches
    the terminal as a command, nor fills the screen."""
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][:80]}...", escaped)


def _shown_lines(hint: str | None) -> str | None:
    return "\n".join(map(shown, hint.splitlines())) if hint is not None else None


class OpgenError(Exception):
    """A failure the user can act on; the CLI prints it without a traceback and exits with 1.

    `output` is what another program (a compiler, CMake) had to say: shown before the message, as it is.
    """

    def __init__(
        self, message: str, location: Location | None = None, hint: str | None = None, output: str = ""
    ) -> None:
        super().__init__(message)
        self.message = shown(message)
        self.location = location
        self.hint = _shown_lines(hint)
        self.output = output

    def __str__(self) -> str:
        return f"{self.output}{_text(self.location, Severity.ERROR, self.message, self.hint)}"


def _text(location: Location | None, severity: Severity, message: str, hint: str | None) -> str:
    text = f"{f'{location}: ' if location is not None else ''}{severity.value}: {message}"
    return "\n".join([text, *(f"    {line}" for line in (hint or "").splitlines())])


@dataclass
class Diagnostics:
    """Collects diagnostics; the only mutable object that passes through opgen's pure functions."""

    items: list[Diagnostic] = field(default_factory=list)
    _seen: set[Diagnostic] = field(default_factory=set, repr=False)

    def error(self, location: Location, message: str, hint: str | None = None) -> None:
        self.add(Diagnostic(Severity.ERROR, location, shown(message), _shown_lines(hint)))

    def warning(self, location: Location, message: str, hint: str | None = None) -> None:
        self.add(Diagnostic(Severity.WARNING, location, shown(message), _shown_lines(hint)))

    def add(self, item: Diagnostic) -> None:
        # The same fault is often met from two sides (an entry and its group); say it once.
        if item not in self._seen:
            self._seen.add(item)
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
    if len(word) > _LONGEST:
        return None
    near = [other for other in known if _bound(word, other) >= cutoff]
    matches = difflib.get_close_matches(word, near, n=1, cutoff=cutoff)
    return matches[0] if matches else None


# Nobody misspells a word of more letters than any operator's name has.
_LONGEST = 200


def _bound(word: str, other: str) -> float:
    """Never below difflib's ratio, at a tenth of its cost: letters that only one of the words has cannot match."""
    letters, others = _letters(word), _letters(other)
    common = min(len(word) - (letters & ~others).bit_count(), len(other) - (others & ~letters).bit_count())
    return 2 * common / max(len(word) + len(other), 1)


@lru_cache(maxsize=8192)
def _letters(word: str) -> int:
    """The set of a word's characters, as a number; some characters share a bit."""
    bits = 0
    for character in word:
        bits |= 1 << (ord(character) & 63)
    return bits


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint line for a misspelt word, or None."""
    match = nearest(word, known)
    return f"did you mean '{match}'?" if match is not None else None
