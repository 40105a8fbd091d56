"""`precomputed`, read before torchgen reads it: each line and each element checked, with a message of its own.

A line says which argument of the meta function is replaced by which arguments of the implementation (`diagonal -> int
var`); the last one may add elements that replace nothing (`int extra`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opgen.cpp import KEYWORDS
from opgen.diagnostics import did_you_mean

__all__ = ["PrecomputedFault", "precomputed_faults"]

_ELEMENT = re.compile(r"(?P<type>\w+(?:\([^()]*\))?[?\[\]\d]*)\s+(?P<name>\w+)")
_HINT = "write `- diagonal -> int var`; elements that replace nothing go on the last line: `- int extra`"


@dataclass(frozen=True)
class PrecomputedFault:
    """What is wrong with line `index` of the list."""

    index: int
    message: str
    hint: str


def precomputed_faults(
    lines: Sequence[str], op: str, arguments: Sequence[str], outputs: Iterable[str]
) -> list[PrecomputedFault]:
    """Faults of `lines` for a meta function with `arguments` and an out overload `op` with `outputs`."""
    faults: list[PrecomputedFault] = []
    replaced: set[str] = set()
    elements: list[tuple[int, str]] = []
    for index, line in enumerate(lines):
        name, arrow, rest = (part.strip() for part in line.partition("->"))
        if not arrow:
            if index < len(lines) - 1:
                faults.append(PrecomputedFault(index, f"'{line}' in 'precomputed' replaces nothing", _HINT))
            rest = name
        elif name not in arguments:
            near = did_you_mean(name, arguments) or f"its arguments: {', '.join(arguments)}"
            message = f"'precomputed' replaces '{name}', which is no argument of {op}"
            faults.append(PrecomputedFault(index, message, near))
        elif name in replaced:
            hint = f"list all its elements in one line: {name} -> int a, int b"
            faults.append(PrecomputedFault(index, f"'precomputed' replaces '{name}' twice", hint))
        replaced.add(name if arrow else "")
        for part in rest.split(","):
            match = _ELEMENT.fullmatch(part.strip())
            if match is None:
                message = f"'{part.strip()}' in 'precomputed' is no type with a name"
                faults.append(PrecomputedFault(index, message, _HINT))
            else:
                elements.append((index, match["name"]))
    taken = {name for name in arguments if name not in replaced} | set(outputs)
    for index, name in elements:
        fault = (
            "is no C++ identifier"
            if name[0].isdigit() or not name.isascii()
            else "is a keyword of C++"
            if name in KEYWORDS
            else "is there twice"
            if name in taken
            else None
        )
        if fault is not None:
            message = f"argument '{name}' of the implementation, from 'precomputed', {fault}"
            faults.append(PrecomputedFault(index, message, "give the element another name"))
        taken.add(name)
    return sorted(faults, key=lambda fault: fault.index)
