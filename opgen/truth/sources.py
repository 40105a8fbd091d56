"""Which source files a kernel is made of, read off the text: nothing is compiled, so every checkout gives one answer.

A file stands for all it includes, for the source of the same name beside a header, for the kernels of other files that
it calls through a header, and for the toolkit classes that it names. That is at least what the compiler's own
dependency files say (a test compares the two), and the same on a machine that has built nothing.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

__all__ = ["SourceTree"]

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_WORD = re.compile(rb"\b[A-Za-z_]\w+")
_CLASS = re.compile(rb"^(?:class|struct)\s+(?:\w+\s+)?(\w+)\s*(?:final\s*)?[:{]", re.MULTILINE)
_MEMBER = re.compile(rb"\b(\w+)::~?\w+\s*\(")
_SOURCES = (".cpp", ".cu")
# where `#include <...>` looks, as CMakeLists.txt has it
_ROOTS = ("", "sdk/include", "torch_musa/csrc/porting", "torch_musa/csrc/porting_host", "sdk")


class SourceTree:
    """The project's C++ sources. Paths are relative to its root, in POSIX form.

    ``functions`` maps names that kernels define for each other to the files that define them.
    """

    def __init__(self, root: Path, target: str, functions: Mapping[str, Iterable[str]]) -> None:
        self._root = root
        self._target = target
        self._functions = {name: frozenset(paths) for name, paths in functions.items()}
        self._texts: dict[str, bytes | None] = {}
        self._closures: dict[str, frozenset[str]] = {}
        self._edges: dict[str, tuple[str, ...]] = {}
        self._folders: dict[str, list[str]] = {}
        self._hashes: dict[str, str] = {}
        self._word_sets: dict[str, frozenset[str]] = {}

    def text(self, path: str) -> bytes | None:
        """A file's content; None where there is none."""
        if path not in self._texts:
            try:
                self._texts[path] = (self._root / path).read_bytes()
            except OSError:
                self._texts[path] = None
        return self._texts[path]

    def digest(self, paths: Iterable[str]) -> str:
        """Of names and contents, in any order."""
        found = hashlib.sha256()
        for path in sorted(set(paths)):
            found.update(f"{path}\0{self._hash(path)}\0".encode())
        return found.hexdigest()

    def below(self, *folders: str, suffixes: tuple[str, ...] = ()) -> list[str]:
        """The files below folders (or a file that is named itself), sorted; no caches of Python's."""
        return [path for folder in folders for path in self._below(folder) if path.endswith(suffixes or "")]

    def _below(self, folder: str) -> list[str]:
        if folder not in self._folders:
            start = self._root / folder
            paths = [start] if start.is_file() else sorted(start.rglob("*"))
            self._folders[folder] = [
                path.relative_to(self._root).as_posix()
                for path in paths
                if "__pycache__" not in path.parts and path.is_file()
            ]
        return self._folders[folder]

    def closure(self, path: str) -> frozenset[str]:
        """Every file of the project that a source is made of, itself among them."""
        if path not in self._closures:
            seen: set[str] = set()
            left = [path]
            while left:
                at = left.pop()
                if at not in seen and self.text(at) is not None:
                    seen.add(at)
                    if at not in self._edges:
                        self._edges[at] = tuple(dict.fromkeys(self._next(at)))
                    left += self._edges[at]
            self._closures[path] = frozenset(seen)
        return self._closures[path]

    def _next(self, path: str) -> Iterator[str]:
        """What one file leads to."""
        included = list(self._included(path))
        yield from included
        yield from self._beside(path)
        if path.startswith("kernels/"):
            yield from self._called(path, included)
            yield from self._toolkit(path)

    def _included(self, path: str) -> Iterator[str]:
        text = self.text(path) or b""
        folder = posixpath.dirname(path)
        for match in _INCLUDE.finditer(text):
            name = match[1].decode(errors="replace")
            # a .cu file is compiled after the port step has renamed what it includes
            ported = name.replace("cuda", "musa").replace("CUDA", "MUSA").replace(".cuh", ".muh")
            for candidate in dict.fromkeys((name, ported)):
                for base in (folder, *_ROOTS):
                    joined = posixpath.normpath(posixpath.join(base, candidate))
                    if not joined.startswith(("../", "/")) and self.text(joined) is not None:
                        yield joined
                        break

    def _beside(self, path: str) -> Iterator[str]:
        """The source that defines what a header declares. Of the toolkit's public headers no source has the name."""
        if path.endswith((".h", ".cuh", ".muh")):
            stem = path.rpartition(".")[0]
            yield from (f"{stem}{suffix}" for suffix in _SOURCES if self.text(f"{stem}{suffix}") is not None)

    def _called(self, path: str, included: list[str]) -> Iterator[str]:
        """Kernels in other files that this one names and that a header it includes declares."""
        headers = [name for name in included if name.startswith("kernels/")]
        if headers and path.endswith(_SOURCES):
            declared = {word for name in headers for word in self._words(name)}
            for word in self._words(path) & declared:
                yield from self._functions.get(word, ())

    def _toolkit(self, path: str) -> Iterator[str]:
        """The stand-in's sources of the toolkit classes that a kernel names."""
        words = self._words(path)
        for name in words & self._implementations.keys():
            yield from self._implementations[name]
        if any(word.startswith("murand") for word in words):
            yield from self.below(f"sdk/{self._target}/murand")

    def _words(self, path: str) -> frozenset[str]:
        if path not in self._word_sets:
            self._word_sets[path] = frozenset(word.decode() for word in _WORD.findall(self.text(path) or b""))
        return self._word_sets[path]

    @cached_property
    def _implementations(self) -> dict[str, list[str]]:
        """Toolkit class -> the files that define its members. Classes that nearly every file uses define themselves."""
        headers = self.below("sdk/include", suffixes=(".h",))
        classes = {name for path in headers for name in _CLASS.findall(self.text(path) or b"")}
        found: dict[str, list[str]] = {}
        for path in self.below("sdk/mudnn", f"sdk/{self._target}/mudnn", suffixes=(".cpp",)):
            for name in set(_MEMBER.findall(self.text(path) or b"")) & classes:
                found.setdefault(name.decode(), []).append(path)
        return found

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = hashlib.sha256(self.text(path) or b"").hexdigest()
        return self._hashes[path]
