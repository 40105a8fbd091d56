"""What is called what on the other side: tables kept as data files beside this module.

Tables are tab-separated text; `#` starts a comment line. `mappings/names/` holds one table for each family of names
(runtime, driver, cublas ...). Such a table may begin with lines `@<TAB>cuda<TAB>musa`, which say how its names begin on
either side; a line of one column is a name that follows them, a line of two columns says both names. There is no rule
for names that are not listed: whether MUSA has a name cannot be told from its first letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as ReadOnly
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from opgen.diagnostics import Location, OpgenError

DEFAULT_TABLES = Path(__file__).parent / "mappings"
_PREFIX = "@"
# A header of CUDA's own by its looks: one that no table knows is an error, unless the sources have a file of that name.
_CUDA_HEADER = re.compile(
    r"cuda/.*|cuda(?:_\w+|[A-Z]\w*)?\.hp?p?|cu(?:blas|rand|fft|solver|sparse|dnn|pti)\w*\.h|nccl\w*\.h"
)


@dataclass(frozen=True)
class Foreign:
    """Names that belong to CUDA by their looks."""

    pattern: re.Pattern[str]
    what: str
    """Whose names they are, for the message."""
    old: str
    new: str
    """What to exchange in the name for a proposal; both empty where there is nothing to propose."""


@dataclass(frozen=True)
class Mapping:
    """The rules of one port. Tables are read-only: a caller's own rules go into a copy (`dataclasses.replace`)."""

    identifiers: ReadOnly[str, str]
    """Exact names: functions, types, macros."""
    device_names: ReadOnly[str, str]
    """The same, in device sources alone."""
    qualified: ReadOnly[str, str]
    """`Scope::name` pairs whose last part means something else elsewhere, such as `DispatchKey::CUDA`."""
    key_macros: ReadOnly[str, int]
    """Macros that take a dispatch key by its bare name, and as which argument."""
    namespaces: ReadOnly[str, str]
    """Names of namespaces, matched only where a scope is meant."""
    includes: ReadOnly[str, str]
    """Include paths: a whole path, or a folder where the key ends in `/` (the longest match wins). One that stands for
    itself is left as it is, its suffix included."""
    file_stems: ReadOnly[str, str]
    """Prefixes of the file name in a mapped include, `CUDAContext.h` to `MUSAContext.h`."""
    suffixes: ReadOnly[str, str]
    """File name suffixes, of the files themselves and of the includes that name them."""
    unportable: ReadOnly[str, str]
    """Names that must not be carried over, and why."""
    unportable_includes: ReadOnly[str, str]
    """Headers (and folders of headers) that must not be carried over, and why."""
    notes: ReadOnly[str, str]
    """Names that are exchanged, and what to know about the other one."""
    foreign: tuple[Foreign, ...]
    """A name that one of these matches and no table knows is an error, never passed through."""

    def include(self, path: str) -> str:
        """The include path to write for `path`; the path itself where no rule applies."""
        if path in self.includes:
            return self.includes[path]
        mapped = path
        folder = _longest_folder(path, self.includes)
        if folder is not None:
            if self.includes[folder] == folder:
                return path
            head, _, name = path[len(folder) :].rpartition("/")
            name = self._stem(name)
            mapped = self.includes[folder] + (f"{head}/{name}" if head else name)
        return self.with_suffix(mapped)

    def knows_include(self, path: str) -> bool:
        """Whether a rule speaks of this path."""
        return path in self.includes or _longest_folder(path, self.includes) is not None

    def include_problem(self, path: str) -> str | None:
        """Why this header has no place on the other side; None where it has one, or is none of CUDA's."""
        if self.knows_include(path):
            return None
        folder = _longest_folder(path, self.unportable_includes)
        reason = self.unportable_includes.get(path) or (self.unportable_includes[folder] if folder else None)
        if reason is None and _CUDA_HEADER.fullmatch(path):
            reason = "no counterpart of this header is known: leave it out, or say in a rule for --map what to include"
        return reason

    def with_suffix(self, name: str) -> str:
        """The file name with its CUDA suffix exchanged, `a/Loops.cuh` to `a/Loops.muh`."""
        for suffix, replacement in self.suffixes.items():
            if name.endswith(suffix):
                return name[: -len(suffix)] + replacement
        return name

    def family(self, name: str) -> Foreign | None:
        """Whose name this is by its looks; None for a name that is nobody's."""
        return next((family for family in self.foreign if family.pattern.fullmatch(name)), None)

    def proposal(self, name: str) -> str | None:
        """What the name would be on the other side if it followed its family; None where nobody can say."""
        family = self.family(name)
        return name.replace(family.old, family.new, 1) if family is not None and family.old else None

    def _stem(self, name: str) -> str:
        for stem, replacement in self.file_stems.items():
            if name.startswith(stem):
                return replacement + name[len(stem) :]
        return name


def _longest_folder(path: str, table: ReadOnly[str, str]) -> str | None:
    return max((key for key in table if key.endswith("/") and path.startswith(key)), key=len, default=None)


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The lines of a table with their numbers, cut at tabs; without comments."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise OpgenError(f"cannot read the mapping table: {reason}", Location(str(path))) from error
    return [
        (number, line.split("\t"))
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("# ") and line != "#"
    ]


def read_table(path: Path) -> ReadOnly[str, str]:
    """One table. A line that is not two columns (or one, where a rule for its beginning stands above), or a name given
    twice, is an error with its place."""
    table: dict[str, str] = {}
    prefixes: list[tuple[str, str]] = []
    for number, columns in read_rows(path):
        here = Location(str(path), number)
        if columns[0] == _PREFIX and len(columns) == 3 and all(columns):
            prefixes.append((columns[1], columns[2]))
            continue
        if len(columns) == 1 and prefixes:
            columns = [columns[0], _by_prefix(columns[0], prefixes, here)]
        if len(columns) != 2 or not all(columns):
            raise OpgenError("expected two columns separated by one tab", here, hint="CUDA name<TAB>MUSA name")
        if columns[0] in table:
            raise OpgenError(f"'{columns[0]}' is mapped twice", here)
        table[columns[0]] = columns[1]
    return MappingProxyType(table)


def _by_prefix(name: str, prefixes: list[tuple[str, str]], here: Location) -> str:
    fitting = [(old, new) for old, new in prefixes if name.startswith(old)]
    if not fitting:
        raise OpgenError(
            f"no '@' line says how '{name}' begins on the other side", here, hint="CUDA name<TAB>MUSA name"
        )
    old, new = max(fitting, key=lambda rule: len(rule[0]))
    return new + name[len(old) :]


def read_families(folder: Path) -> ReadOnly[str, str]:
    """All tables of a folder as one. A name in two of them is an error."""
    merged: dict[str, str] = {}
    for path in sorted(folder.glob("*.tsv")):
        table = read_table(path)
        twice = sorted(merged.keys() & table.keys())
        if twice:
            raise OpgenError(f"'{twice[0]}' is mapped in another table, too", Location(str(path)))
        merged.update(table)
    return MappingProxyType(merged)


def _foreign(path: Path) -> tuple[Foreign, ...]:
    found = []
    for number, columns in read_rows(path):
        if len(columns) != 4:
            raise OpgenError("expected four columns separated by tabs", Location(str(path), number))
        pattern, what, old, new = columns
        found.append(Foreign(re.compile(pattern, re.ASCII), what, *(("", "") if old == "-" else (old, new))))
    return tuple(found)


@lru_cache(maxsize=4)
def load_mapping(folder: Path = DEFAULT_TABLES) -> Mapping:
    """The rules in `folder`, which holds one file per field of `Mapping`, and `names/` for the identifiers."""

    def table(name: str) -> ReadOnly[str, str]:
        return read_table(folder / f"{name}.tsv")

    return Mapping(
        identifiers=read_families(folder / "names"),
        device_names=table("device_names"),
        qualified=table("qualified"),
        key_macros=MappingProxyType({name: int(place) for name, place in table("key_macros").items()}),
        namespaces=table("namespaces"),
        includes=table("includes"),
        file_stems=table("file_stems"),
        suffixes=table("suffixes"),
        unportable=table("unportable"),
        unportable_includes=table("unportable_includes"),
        notes=table("notes"),
        foreign=_foreign(folder / "foreign.tsv"),
    )


def without_defaults(mapping: Mapping) -> Mapping:
    """No rules but those on file names: for a caller who brings all others. What belongs to CUDA by its looks is still
    reported."""
    nothing: ReadOnly[str, str] = MappingProxyType({})
    return Mapping(
        identifiers=nothing,
        device_names=nothing,
        qualified=nothing,
        key_macros=MappingProxyType({}),
        namespaces=nothing,
        includes=nothing,
        file_stems=nothing,
        suffixes=mapping.suffixes,
        unportable=mapping.unportable,
        unportable_includes=mapping.unportable_includes,
        notes=nothing,
        foreign=mapping.foreign,
    )
