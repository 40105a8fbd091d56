"""The seeded faults, and how they get into a copy of the tree.

A fault is a piece of a source, what stands there instead, and the overloads that it makes wrong. All of them are
compiled into one library, each behind a switch that an environment variable turns on (OPGEN_MUTANT=<number>): every
fault is tried alone, so none can hide or help another, and the tree is built once. What no switch can turn (an entry of
the operator list) is there ``always``, and concerns overloads of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HEADER = "mutants/Mutants.h"
_HEADER_TEXT = """\
// The switches of tests/mutants: which seeded fault is on, by number; none by default.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace mutants {

inline int chosen() {
  static const int number = [] {
    const char* text = std::getenv("OPGEN_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return number;
}

inline bool on(int number) { return chosen() == number; }

/// Another number at every call: what a value that depends on the past is made of.
inline uint64_t tick() {
  static std::atomic<uint64_t> count{1};
  return count++;
}

}  // namespace mutants
"""


@dataclass(frozen=True)
class Mutant:
    """One fault. ``within`` is a longer text around ``replace``, where that alone stands in several places.

    ``backward`` tells that it shows in gradients. ``number`` is what turns it on.
    """

    name: str
    kind: str
    file: str
    replace: str
    instead: str
    overloads: tuple[str, ...]
    number: int
    origin: str
    within: str | None = None
    backward: bool = False
    always: bool = False

    @property
    def statement(self) -> bool:
        """True where whole statements are replaced, False for an expression."""
        return self.replace.rstrip().endswith((";", "}"))


class Stale(Exception):
    """A fault that no longer fits its source."""


_KEYS = frozenset({"name", "kind", "file", "replace", "with", "overloads", "within", "backward", "always"})
_NEEDED = frozenset({"name", "kind", "file", "replace", "with", "overloads"})


def load(folder: Path) -> tuple[Mutant, ...]:
    """Every fault of the folder's YAML files; raises ValueError with file and entry for a malformed one."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.yaml")):
        for position, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8"))):
            origin = f"{path.name}, entry {position + 1} ({entry.get('name', 'without a name')})"
            found.append(_read(entry, len(found), origin))
    names = [mutant.name for mutant in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two faults are called {twice[0]!r}")
    return tuple(found)


def _read(entry: dict[str, Any], number: int, origin: str) -> Mutant:
    missing, unknown = _NEEDED - entry.keys(), entry.keys() - _KEYS
    if missing or unknown:
        what = f"lacks {', '.join(sorted(missing))}" if missing else f"has unknown keys {', '.join(sorted(unknown))}"
        raise ValueError(f"{origin}: {what}")
    return Mutant(
        name=entry["name"],
        kind=entry["kind"],
        file=entry["file"],
        replace=entry["replace"],
        instead=entry["with"],
        overloads=tuple(entry["overloads"]),
        number=number,
        origin=origin,
        within=entry.get("within"),
        backward=entry.get("backward", False),
        always=entry.get("always", False),
    )


@dataclass(frozen=True, order=True)
class _Span:
    start: int
    end: int
    text: str = field(compare=False)
    mutant: Mutant = field(compare=False)


def locate(mutant: Mutant, text: str) -> tuple[int, int]:
    """Where the replaced piece stands in the text of its file; Stale says what to do where that is not one place."""
    outer = mutant.within or mutant.replace
    count = text.count(outer)
    if count != 1:
        raise Stale(
            f"{mutant.origin}: {mutant.file} has {count} places with\n{_indented(outer)}\n"
            + ("  the source has changed: " if not count else "  the piece is too short: ")
            + "write the text as it stands there now, with enough around it under `within:` to name one place"
        )
    if outer.count(mutant.replace) != 1:
        raise Stale(f"{mutant.origin}: `within` holds `replace` {outer.count(mutant.replace)} times instead of once")
    start = text.index(outer) + outer.index(mutant.replace)
    return start, start + len(mutant.replace)


def apply(mutants: Iterable[Mutant], root: Path) -> Iterator[tuple[str, str]]:
    """(file, new text) for every file that the faults change, and for the header with their switches."""
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    for name, inside in by_file.items():
        path = root / name
        if not path.exists():
            raise Stale(f"{inside[0].origin}: there is no {name} any more; name the file that took its place")
        text = path.read_text(encoding="utf-8")
        spans = sorted(_Span(*locate(mutant, text), _switch(mutant), mutant) for mutant in inside)
        for one, other in itertools.pairwise(spans):
            if other.start < one.end:
                raise Stale(f"{other.mutant.origin}: replaces a part of what {one.mutant.name!r} replaces")
        for span in reversed(spans):
            text = text[: span.start] + span.text + text[span.end :]
        switched = any(not mutant.always for mutant in inside)
        yield name, f'#include "{HEADER}"\n{text}' if switched else text
    yield HEADER, _HEADER_TEXT


def _switch(mutant: Mutant) -> str:
    if mutant.always:
        return mutant.instead
    condition = f"::mutants::on({mutant.number})"
    if mutant.statement:
        return f"if ({condition}) {{ {mutant.instead} }} else {{ {mutant.replace} }}"
    return f"({condition} ? ({mutant.instead}) : ({mutant.replace}))"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
