"""What a kernel on a DispatchStub must look like, read from the header in the wheel that declares the stub.

A stub is declared as `DECLARE_DISPATCH(<function pointer type>, <stub>)`, where the type is written out or is an alias
of the same header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opgen.cpp import split_top_level

__all__ = ["StubSignature", "find_stub_signature", "parse_stub_signatures"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*([^;]*?\(\s*\*\s*\)[^;]*);|\btypedef\s+([^;]*?\(\s*\*\s*(\w+)\s*\)[^;]*);")
_DECLARATION = re.compile(r"\bDECLARE_DISPATCH\s*\(")
_POINTER = re.compile(r"^(?P<returns>.*?)\(\s*\*\s*\w*\s*\)\s*\((?P<parameters>.*)\)\s*$", re.DOTALL)
_NAMED = re.compile(r"[\s&*>]\w+$")
_BUILTIN = frozenset({"int", "long", "bool", "float", "double", "char", "unsigned", "short", "const", "auto"})


@dataclass(frozen=True)
class StubSignature:
    """The type of the kernels that hang on a stub."""

    stub: str
    returns: str
    parameters: tuple[str, ...]
    """As the header writes them, each with a name: a missing one is made up (`a0`, `a1`; `iter` for an iterator)."""

    def definition(self, kernel: str) -> str:
        """`void kernel(TensorIteratorBase& iter, const Scalar& weight)`."""
        return f"{self.returns} {kernel}({', '.join(self.parameters)})"


def parse_stub_signatures(text: str) -> Mapping[str, StubSignature]:
    """Every stub that a header declares, by name; declarations of a form not known here are left out."""
    text = _COMMENT.sub(" ", text)
    aliases = {m[1] or m[4]: m[2] or m[3] for m in _ALIAS.finditer(text)}
    found: dict[str, StubSignature] = {}
    for match in _DECLARATION.finditer(text):
        pieces = split_top_level(_until_closed(text, match.end()))
        if len(pieces) < 2:
            continue
        stub = pieces[-1]
        pointer = ", ".join(pieces[:-1])
        parsed = _POINTER.match(aliases.get(pointer, pointer).strip())
        if parsed is not None and re.fullmatch(r"\w+", stub):
            parameters = split_top_level(parsed["parameters"])
            named = tuple(_named(parameter, position) for position, parameter in enumerate(parameters))
            found[stub] = StubSignature(stub, " ".join(parsed["returns"].split()), named)
    return found


def find_stub_signature(include: Path, header: str, stub: str) -> StubSignature | None:
    """The signature of `stub`, which one of the comma-separated headers below `include` declares; None where none of
    them does."""
    for name in header.split(","):
        found = _read(include / name).get(stub)
        if found is not None:
            return found
    return None


@cache
def _read(path: Path) -> Mapping[str, StubSignature]:
    try:
        return parse_stub_signatures(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}


def _until_closed(text: str, start: int) -> str:
    """What stands between the parenthesis before `start` and the one that closes it."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position]
    return text[start:]


def _named(parameter: str, position: int) -> str:
    text = re.sub(r"\s*([&*]+)\s*", r"\1 ", " ".join(parameter.split())).strip()
    name = _NAMED.search(text)
    if name is not None and text.split()[-1] not in _BUILTIN and re.split(r"[\s&*>]", text)[-1]:
        # `const Tensor` has two words, too, but no name
        words = re.sub(r"\bconst\b", "", text[: name.start() + 1]).strip()
        if words:
            return text
    made_up = "iter" if "TensorIterator" in text else f"a{position}"
    return f"{text} {made_up}".replace("  ", " ")
