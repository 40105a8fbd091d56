"""What is called what on the other side: tables kept as data files, one per family, beside this module.

Every table is tab-separated text, `CUDA name<TAB>MUSA name`; `#` starts a comment line.
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


@dataclass(frozen=True)
class Mapping:
    """The rules of one port. Tables are read-only: a caller's own rules go into a copy (`dataclasses.replace`)."""

    identifiers: ReadOnly[str, str]
    """Exact names: functions, types, macros."""
    qualified: ReadOnly[str, str]
    """`Scope::name` pairs whose last part means something else elsewhere, such as `DispatchKey::CUDA`."""
    namespaces: ReadOnly[str, str]
    """Names of namespaces, matched only where the parser sees a namespace."""
    includes: ReadOnly[str, str]
    """Include paths: a whole path, or a folder where the key ends in `/` (the longest match wins)."""
    file_stems: ReadOnly[str, str]
    """Prefixes of the file name in a mapped include, `CUDAContext.h` to `MUSAContext.h`."""
    suffixes: ReadOnly[str, str]
    """File name suffixes, of the files themselves and of the includes that name them."""
    unportable: ReadOnly[str, str]
    """Names that must not be carried over, and why."""
    foreign: re.Pattern[str]
    """Names that belong to CUDA by their looks: one that no table knows is an error, never passed through."""

    def include(self, path: str) -> str:
        """The include path to write for `path`; the path itself where no rule applies."""
        if path in self.includes:
            return self.includes[path]
        folders = [key for key in self.includes if key.endswith("/") and path.startswith(key)]
        mapped = path
        if folders:
            folder = max(folders, key=len)
            head, _, name = path[len(folder) :].rpartition("/")
            for stem, replacement in self.file_stems.items():
                if name.startswith(stem):
                    name = replacement + name[len(stem) :]
                    break
            mapped = self.includes[folder] + (f"{head}/{name}" if head else name)
        return self.with_suffix(mapped)

    def with_suffix(self, name: str) -> str:
        """The file name with its CUDA suffix exchanged, `a/Loops.cuh` to `a/Loops.muh`."""
        for suffix, replacement in self.suffixes.items():
            if name.endswith(suffix):
                return name[: -len(suffix)] + replacement
        return name


def read_table(path: Path) -> ReadOnly[str, str]:
    """One table. A line that is not two columns, or a name given twice, is an error with its place."""
    table: dict[str, str] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OpgenError(f"cannot read the mapping table: {error}", Location(str(path))) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.split("\t")
        here = Location(str(path), number)
        if len(columns) != 2 or not all(columns):
            raise OpgenError("expected two columns separated by one tab", here, hint="CUDA name<TAB>MUSA name")
        if columns[0] in table:
            raise OpgenError(f"'{columns[0]}' is mapped twice", here)
        table[columns[0]] = columns[1]
    return MappingProxyType(table)


@lru_cache(maxsize=4)
def load_mapping(folder: Path = DEFAULT_TABLES) -> Mapping:
    """The rules in `folder`, which holds one file per field of `Mapping`."""
    table = {
        name: read_table(folder / f"{name}.tsv")
        for name in ("identifiers", "qualified", "namespaces", "includes", "file_stems", "suffixes", "unportable")
    }
    # cudaX, cublasX ..., CUDA_X, and CUDA inside a longer name (getCurrentCUDAStream, C10_CUDA_CHECK).
    foreign = re.compile(r"cuda[A-Z_]\w*|(?:cublas|curand|cufft|cusolver|cusparse|cudnn)\w*|nccl[A-Z]\w*|\w*CUDA\w*")
    return Mapping(**table, foreign=foreign)
