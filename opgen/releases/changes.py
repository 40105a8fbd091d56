"""What a comparison of two releases finds."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from opgen.diagnostics import Location

__all__ = ["Change", "Comparison", "Finding", "Urgency", "differing"]


class Urgency(str, Enum):
    """What a finding asks of the reader, worst first."""

    EDIT = "edit"
    """The tree does not generate, compile or run right with the other release until this is edited."""
    REVIEW = "review"
    """Goes on as it is; whether that is still what is wanted, only a person can say."""
    NEWS = "news"
    """No entry is concerned: the coverage denominator moves."""


class Change(str, Enum):
    """The kinds of difference."""

    OPERATOR_GONE = "operator gone"
    OPERATOR_NEW = "operator new"
    SCHEMA = "schema changed"
    KERNEL_RENAMED = "kernel renamed"
    KERNEL_GONE = "kernel gone"
    STRUCTURED = "structured now"
    UNSTRUCTURED = "structured no longer"
    GROUP = "group changed"
    META = "meta changed"
    STUB_GONE = "stub gone"
    STUB_MOVED = "stub moved"
    STUB_TYPE = "stub type changed"
    AUTOGEN = "autogen changed"
    COMPOSITE = "composite changed"
    DISPATCH = "dispatch changed"
    CUDA_NEW = "CUDA kernel new"
    CUDA_GONE = "CUDA kernel gone"


_URGENCIES = list(Urgency)
_CHANGES = list(Change)


@dataclass(frozen=True)
class Finding:
    """One difference that matters, and what to do about it."""

    urgency: Urgency
    change: Change
    subject: str
    """The overload, or the DispatchStub."""
    message: str
    edit: str | None = None
    """What to change, in the reader's files."""
    before: str | None = None
    after: str | None = None
    """The two texts that differ (schemas, signatures, names), where there are such."""
    location: Location | None = None
    """The entry or the source line concerned."""

    @property
    def rank(self) -> tuple[int, int, str]:
        """Worst first, then by kind, then by name."""
        return _URGENCIES.index(self.urgency), _CHANGES.index(self.change), self.subject


@dataclass(frozen=True)
class Comparison:
    """Everything between two releases."""

    before: str
    after: str
    between: tuple[str, ...]
    """Releases between the two that were looked at, to tell when something changed."""
    entries: int
    """Entries compared."""
    denominators: tuple[int, int]
    """Overloads with a CUDA kernel, vendor-only ones left out."""
    findings: tuple[Finding, ...]

    def counts(self) -> Mapping[Urgency, int]:
        return {urgency: sum(f.urgency is urgency for f in self.findings) for urgency in Urgency}


_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def differing(before: str, after: str) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    """The half-open character ranges in which two texts differ, word by word: (in `before`, in `after`)."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    starts = [_starts(old), _starts(new)]
    ranges: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for side, first, last in ((0, a, b), (1, c, d)):
            if first < last:
                ranges[side].append((starts[side][first], starts[side][last]))
    return ranges


def _starts(words: Sequence[str]) -> list[int]:
    """Where each word begins, and where the last one ends."""
    positions = [0]
    for word in words:
        positions.append(positions[-1] + len(word))
    return positions
