"""What ``kernels/`` really defines: implementation functions, impl and meta methods, DispatchStub registrations.

Nothing is compiled and no header is read. A kernel has to be visible in the text: a definition that only a macro's
expansion would show is not found, which also keeps every kernel greppable.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from opgen import cache
from opgen.diagnostics import Location, OpgenError
from opgen.kernel_source import Found, Kind, parse_source, skeleton
from opgen.progress import busy

__all__ = ["FAMILIES", "Definition", "Family", "KernelIndex", "scan_classes", "scan_kernels"]

Family = Literal["mudnn", "ported", "cpu_fallback"]
FAMILIES: tuple[Family, ...] = ("mudnn", "ported", "cpu_fallback")

# Far above what anybody writes by hand.
MAX_BYTES = 4 * 1024 * 1024
_SUFFIXES = (".cpp", ".cu")
_CACHE_NAME = "kernels"
_MANY = 20  # sources that take long enough to parse for a sign of life
# Goes up whenever parse_source would answer differently for the same text.
_CACHE_KEY = "2"


@dataclass(frozen=True)
class Definition:
    """One definition in a kernel source. ``path`` is relative to the project root; lines and columns count from 1.

    ``returns`` and ``params`` are canonical types (see :mod:`opgen.cpp`) and ``text`` is the declaration as written.
    ``family`` is the folder under ``kernels/``.
    """

    kind: Kind
    name: str
    namespace: str
    path: str
    line: int
    column: int
    family: Family
    returns: str
    params: tuple[str, ...]
    text: str
    unwritten: bool = False
    """Its source is a skeleton: a call of it raises NotImplementedError."""


Definitions = Mapping[str, tuple[Definition, ...]]


@dataclass(frozen=True)
class KernelIndex:
    """Definitions by name. A name has several when C++ overloads it, or when two sources define the same kernel."""

    functions: Definitions = field(default_factory=dict)
    impls: Definitions = field(default_factory=dict)
    metas: Definitions = field(default_factory=dict)
    stubs: Definitions = field(default_factory=dict)


def scan_kernels(root: Path, folder: Path | None = None) -> KernelIndex:
    """Index ``{mudnn,ported,cpu_fallback}/**/*.{cpp,cu}`` below ``folder`` (``root/kernels``); no folder, an empty
    index. Paths are told relative to the project ``root``.

    A file is parsed only when its content has not been seen before. Raises OpgenError where one cannot be read.
    """
    base = folder if folder is not None else root / "kernels"
    sources = [(path, family, _read(path)) for family in FAMILIES for path in _sources(base / family)]
    cached = cache.load(_CACHE_NAME, _CACHE_KEY)
    known: dict[str, tuple[Found, ...]] = cached if isinstance(cached, dict) else {}
    digests = [hashlib.sha256(content).hexdigest() for _, _, content in sources]
    unseen = {digest: content for digest, (_, _, content) in zip(digests, sources, strict=True) if digest not in known}
    with busy("reading kernel sources") if len(unseen) >= _MANY else nullcontext():
        read = {digest: parse_source(content) for digest, content in unseen.items()}
    parsed = {digest: known[digest] if digest in known else read[digest] for digest in digests}
    definitions: list[Definition] = []
    for digest, (path, family, _) in zip(digests, sources, strict=True):
        relative = path.relative_to(root).as_posix()
        definitions.extend(_definition(item, relative, family) for item in parsed[digest])
    if parsed.keys() - known.keys():
        # Contents that are gone are kept while there is room: switching branches should not cost a scan.
        kept = known if len(known) < 4096 else {}
        cache.store(_CACHE_NAME, _CACHE_KEY, {**kept, **parsed})
    return index_definitions(definitions)


_CLASS = re.compile(rb"\b(?:struct|class)\s+(?:[A-Z0-9_]+\s+)?(\w+)\s*(?:final\s*)?[:{]|\busing\s+(\w+)\s*=")


def scan_classes(header: Path) -> frozenset[str] | None:
    """Names of the classes that a header defines outside of any other; None where there is no such header."""
    if not header.is_file():
        return None
    return frozenset((m[1] or m[2]).decode() for m in _CLASS.finditer(skeleton(_read(header))))


def index_definitions(definitions: Iterable[Definition]) -> KernelIndex:
    """Group definitions by kind and name, in the order given."""
    by_kind: dict[Kind, dict[str, tuple[Definition, ...]]] = {"function": {}, "impl": {}, "meta": {}, "stub": {}}
    for definition in definitions:
        names = by_kind[definition.kind]
        names[definition.name] = (*names.get(definition.name, ()), definition)
    return KernelIndex(
        functions=by_kind["function"],
        impls=by_kind["impl"],
        metas=by_kind["meta"],
        stubs=by_kind["stub"],
    )


def _sources(folder: Path) -> list[Path]:
    def unreadable(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):  # a family without sources
            return
        raise OpgenError(f"cannot read the folder: {error.strerror}", Location(str(error.filename)), "make it readable")

    # Path.rglob would pass over a folder that cannot be read, and every kernel in it would be missing.
    found = (Path(where) / name for where, _, names in os.walk(folder, onerror=unreadable) for name in names)
    return sorted(path for path in found if path.suffix in _SUFFIXES and path.is_file())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OpgenError(f"cannot read the kernel source: {error.strerror}", Location(str(path))) from None
    if len(content) > MAX_BYTES:
        raise OpgenError(
            f"the kernel source is larger than {MAX_BYTES // 2**20} MiB", Location(str(path)), "move it elsewhere"
        )
    return content


def _definition(found: Found, path: str, family: Family) -> Definition:
    return Definition(
        kind=found.kind,
        name=found.name,
        namespace=found.namespace,
        path=path,
        line=found.line,
        column=found.column,
        family=family,
        returns=found.returns,
        params=found.params,
        text=found.text,
        unwritten=found.unwritten,
    )
