"""Which faults of the operator list make an answer about an operator doubtful."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from opgen.diagnostics import Diagnostic, Diagnostics, Severity
from opgen.yaml_nodes import compose

if TYPE_CHECKING:
    from opgen.entry import OpSpec

__all__ = ["Entry", "entries_of", "problems_of"]


@dataclass(frozen=True, order=True)
class Entry:
    """Where an entry of the operator list begins, and whose it is."""

    path: str
    line: int
    column: int
    op: str | None
    """None where the entry does not tell."""


def entries_of(path: Path, specs: Iterable[OpSpec]) -> tuple[Entry, ...]:
    """All entries of the list at `path` in their order, those included of which nothing could be read."""
    composed = compose(path.read_bytes(), str(path), Diagnostics())
    if composed is None or not isinstance(composed[0], yaml.SequenceNode):
        return ()
    starts = [(node.start_mark.line + 1, node.start_mark.column + 1) for node in composed[0].value]
    ops = {bisect_right(starts, (spec.location.line, spec.location.column)) - 1: spec.func for spec in specs}
    return tuple(Entry(str(path), *start, ops.get(number)) for number, start in enumerate(starts))


def problems_of(
    names: set[str], listed: bool, diagnostics: Sequence[Diagnostic], entries: Sequence[Entry]
) -> tuple[Diagnostic, ...]:
    """What was said about the overloads `names`, by their names or at their entries.

    An entry that does not tell its operator may be the one of an operator that is not `listed`.
    """
    return tuple(d for d in diagnostics if _names_one(d, names) or _is_at_one(d, names, listed, entries))


def _names_one(item: Diagnostic, names: set[str]) -> bool:
    return any(f"'{name}'" in item.message for name in names)


def _is_at_one(item: Diagnostic, names: set[str], listed: bool, entries: Sequence[Entry]) -> bool:
    place = item.location
    if item.severity is not Severity.ERROR or not entries or place.path != entries[0].path:
        return False
    starts = [(entry.line, entry.column) for entry in entries]
    number = bisect_right(starts, (place.line, place.column)) - 1
    op = entries[max(number, 0)].op
    return op in names if op is not None else not listed
