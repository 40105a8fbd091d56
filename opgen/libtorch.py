"""What the installed libtorch really exports in namespace at::native, read from the library's dynamic symbol table.

A reused kernel is one that our library leaves for libtorch to provide; one that is not there would be an undefined
symbol when the backend is loaded. native_functions.yaml names kernels, but not which of them a wheel contains.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen import cache

if TYPE_CHECKING:
    from opgen.upstream import TorchInstall

__all__ = ["Exports", "load_exports", "read_exports"]

# Goes up whenever read_exports would answer differently for the same file.
_CACHE_FORMAT = "1"


@dataclass(frozen=True)
class Exports:
    """Names of functions `at::native::<name>` and of classes `at::native::<name>` that have a method `impl`."""

    functions: frozenset[str]
    impls: frozenset[str]


def load_exports(install: TorchInstall) -> Exports | None:
    """The exports of `install`'s libtorch_cpu, the library that the backend is linked against.

    None where there is no such library (headers unpacked without it) or none that can be read here. Cached until the
    file changes.
    """
    stamp = install.library_stamp()
    if stamp is None:
        return None
    name, key = f"exports-{install.release}", f"{_CACHE_FORMAT}:{install.library}:{stamp}"
    cached = cache.load(name, key)
    if isinstance(cached, Exports):
        return cached
    try:
        with install.library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            exports = read_exports(image)
    except (OSError, ValueError):
        return None
    if exports is not None:
        cache.store(name, key, exports)
    return exports


def read_exports(image: mmap.mmap | bytes) -> Exports | None:
    """The exports of a 64-bit little-endian ELF image; None for anything else, or where its tables make no sense.

    Layout: Tool Interface Standard, ELF-64 object file format; names: Itanium C++ ABI, 5.1 (`_ZN2at6native...E`).
    """
    try:
        names = list(_defined(image))
    except (struct.error, IndexError, OverflowError):
        return None
    functions, impls = set(), set()
    for length, rest in names:
        name, following = rest[:length], rest[length : length + 6]
        if following[:1] == b"E":
            functions.add(name.decode("ascii", "replace"))
        elif following == b"4implE":
            impls.add(name.decode("ascii", "replace"))
    return Exports(frozenset(functions), frozenset(impls)) if functions else None


_PREFIX = re.compile(rb"_ZN2at6native(\d{1,4})([A-Za-z_][^\0]*)")
_DYNSYM = 11  # SHT_DYNSYM


def _defined(image: mmap.mmap | bytes) -> Iterator[tuple[int, bytes]]:
    """Each symbol in at::native that the image defines: the length of its name, and the mangled text from there on."""
    if image[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return
    (offset,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, offset + i * size) for i in range(count)]
    for section in sections:
        if section[1] != _DYNSYM:
            continue
        names = sections[section[6]]
        strings = image[names[4] : names[4] + names[5]]
        symbols = image[section[4] : section[4] + section[5]]
        for name, _, _, defined_in, _, _ in struct.iter_unpack("<IBBHQQ", symbols):
            # Most symbols are of other namespaces: a comparison of bytes is cheaper than the expression.
            if defined_in and strings.startswith(b"_ZN2at6native", name):
                match = _PREFIX.match(strings, name)
                if match is not None:
                    yield int(match[1]), match[2]
