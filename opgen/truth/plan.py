"""What is to be run: the overloads, with what the test bench has to be told of each."""

from __future__ import annotations

import re
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.coverage.matrix import State, measure

if TYPE_CHECKING:
    from opgen.gen import Analysis, Sources

__all__ = ["Planned", "plan", "tested_elsewhere"]

# In-place and out= forms have the derivative of the functional one, or none; backward operators are first-order only.
_NO_GRADIENT = re.compile(r"_backward|overrideable|(^|\.)(\w*_)?(out|grad_input|output)(_\w+)?$")
_NEVER = frozenset({"_copy_from", "_copy_from_and_resize"})


@dataclass(frozen=True)
class Planned:
    """One overload that can be called on the device."""

    op: str
    fallback: bool
    """Whether it goes through the CPU on purpose."""
    gradients: bool
    """Whether gradients are part of its verdict: a functional overload that may be differentiable."""
    skipped: str | None = None
    """Why it is not run: it has no kernel, or no arguments can be drawn for it."""
    loaded: bool = False
    """Whether the project does not know it: only what `--load` names has it."""


def plan(sources: Sources, analysis: Analysis) -> dict[str, Planned]:
    """Every overload that is to be run, by name: those of the denominator that have a kernel, and what the operator
    list registers beside them (operators of one's own, and those that upstream has no CUDA kernel for)."""
    matrix = measure(analysis.registrations, analysis.upstream, sources.backend)
    counted = {
        overload.op: overload.state is State.CPU_FALLBACK
        for overload in matrix.overloads
        if overload.state not in (State.MISSING, State.SKELETON)
    }
    listed = {
        r.op: r.family == "cpu_fallback"
        for r in analysis.registrations
        if r.dispatch_key == sources.backend.dispatch_key and not r.unwritten
    }
    elsewhere = tested_elsewhere(sources.kernels.parent)
    wanted = {**listed, **counted}
    return {
        op: Planned(op, wanted[op], may_have_gradient(op), elsewhere.get(op)) for op in sorted(wanted, key=_namespaced)
    }


def may_have_gradient(op: str) -> bool:
    """Whether an overload's name is that of a functional form of PyTorch's own that is not a gradient itself."""
    base = op.partition(".")[0]
    return "::" not in op and not base.endswith("_") and not _NO_GRADIENT.search(op) and op not in _NEVER


def tested_elsewhere(root: Path) -> dict[str, str]:
    """Overload -> why it is not compared, from the project's tests/ops/tested_elsewhere.py; empty without one."""
    path = root / "tests" / "ops" / "tested_elsewhere.py"
    if not path.is_file():
        return {}
    table: Mapping[str, tuple[str, str, str]] = runpy.run_path(str(path))["TESTED_ELSEWHERE"]
    return {op: f"{reason}; tests by name hold it: {where}" for op, (where, _, reason) in table.items()}


def _namespaced(op: str) -> tuple[bool, str]:
    return ("::" in op, op)
