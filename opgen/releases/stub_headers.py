"""Which DispatchStubs a wheel's headers declare: name, header, and the function type a kernel must have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opgen.cpp import canonical_parameter, canonical_type, split_top_level

__all__ = ["Stub", "declared_stubs", "stub_headers"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARE = re.compile(r"^\s*DECLARE_DISPATCH\s*\(", re.MULTILINE)
_USING = re.compile(r"\busing\s+(\w+)\s*=\s*([^;]+);")
_TYPEDEF = re.compile(r"\btypedef\s+([^;()]+)\(\s*\*\s*(\w+)\s*\)\s*(\([^;]*\))\s*;")
_POINTER = re.compile(r"(?P<returns>.*?)\(\s*\*\s*\w*\s*\)\s*\((?P<params>.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Stub:
    """One `DECLARE_DISPATCH`."""

    header: str
    """Include path: `ATen/native/UnaryOps.h`."""
    type: str
    """Function type in canonical spelling, without parameter names: `void (TensorIteratorBase&, const Scalar&)`."""


def stub_headers(include: Path) -> dict[str, str]:
    """The headers below `include` that may declare stubs, by include path. Unreadable ones count as empty."""
    paths = [*(include / "ATen").glob("*.h"), *(include / "ATen" / "native").rglob("*.h")]
    return {path.relative_to(include).as_posix(): path.read_text("utf-8", "replace") for path in sorted(paths)}


def declared_stubs(headers: Mapping[str, str]) -> dict[str, Stub]:
    """The stubs that these headers (include path -> text) declare."""
    texts = {name: _COMMENT.sub(" ", text) for name, text in headers.items() if "DECLARE_DISPATCH" in text}
    aliases = {name: _aliases(text) for name, text in texts.items()}
    shared: dict[str, str] = {}
    for found in aliases.values():
        shared.update(found)
    stubs: dict[str, Stub] = {}
    for header, text in texts.items():
        # One header's name for a type may mean another type in the next one, so its own comes first.
        known = {**shared, **aliases[header]}
        for function, name in _declarations(text):
            stubs[name] = Stub(header, _function_type(known.get(function, function)))
    return stubs


def _declarations(text: str) -> Iterable[tuple[str, str]]:
    for match in _DECLARE.finditer(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        arguments = split_top_level(text[match.end() : end - 1])
        if len(arguments) >= 2 and arguments[-1].isidentifier():
            yield ", ".join(arguments[:-1]), arguments[-1]


def _aliases(text: str) -> dict[str, str]:
    found = {name: " ".join(type_.split()) for name, type_ in _USING.findall(text)}
    found.update({name: f"{returns.strip()} (*){params}" for returns, name, params in _TYPEDEF.findall(text)})
    return found


def _function_type(text: str) -> str:
    """`void (*)(TensorIterator &iter, const Scalar &s)` -> `void (TensorIterator&, const Scalar&)`."""
    match = _POINTER.fullmatch(text.strip())
    if match is None:
        return " ".join(text.split())
    parameters = ", ".join(map(canonical_parameter, split_top_level(match["params"])))
    return f"{canonical_type(match['returns'])} ({parameters})"
