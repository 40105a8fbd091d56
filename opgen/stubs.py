"""Which DispatchStubs the structured implementations that CPU and CUDA share end up in (data/legacy_stubs.tsv).

A Legacy entry runs upstream's implementation, and a stub without a kernel for the device is an internal assert at run
time, not a fallback. So opgen wants to see each stub registered before it emits the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CPU_ONLY = "the implementation takes this path for CPU tensors only"
_OTHER_OVERLOAD = "the implementation's helper is shared; this overload never takes that branch"

# Stubs that the static call graph shows but that a call on another device cannot reach, with the reason.
_UNREACHED: Mapping[tuple[str, str], str] = {
    ("gather.out", "gather_expanded_index_stub"): _CPU_ONLY,
    ("scatter_add.out", "scatter_add_expanded_index_stub"): _CPU_ONLY,
    ("scatter_reduce.two_out", "scatter_reduce_expanded_index_stub"): _CPU_ONLY,
    ("scatter.src_out", "scatter_reduce_stub"): _OTHER_OVERLOAD,
    ("scatter.reduce_out", "scatter_stub"): _OTHER_OVERLOAD,
    ("scatter.value_out", "scatter_scalar_reduce_stub"): _OTHER_OVERLOAD,
    ("scatter.value_reduce_out", "scatter_fill_stub"): _OTHER_OVERLOAD,
}


@dataclass(frozen=True)
class LegacyStubs:
    """What the implementation of one structured group reaches."""

    impl: str
    """Upstream's implementation, as in `at::native::structured_<impl>`."""
    stubs: tuple[str, ...]
    """DispatchStubs a kernel must be registered on; empty where only other operators are called."""
    header: str
    """The header(s) that declare them, comma-separated."""


@dataclass(frozen=True)
class ReusedStubs:
    """What an unstructured function of upstream's reaches, when an entry reuses it."""

    stubs: tuple[str, ...]
    header: str
    """The header(s) that declare them, comma-separated."""


@cache
def reused_stubs() -> Mapping[str, ReusedStubs]:
    """Stubs by the name of the plain overload (data/stubs_extra.tsv)."""
    return {op: ReusedStubs(tuple(stubs.split(",")), header) for op, stubs, header in _rows("stubs_extra.tsv")}


def _rows(name: str) -> list[list[str]]:
    # Not importlib.resources, which imports zipfile: a twentieth of a run.
    text = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


@cache
def legacy_stubs() -> Mapping[str, LegacyStubs]:
    """Stubs by the name of the group's out overload."""
    table = {}
    for op, impl, stubs, header in _rows("legacy_stubs.tsv"):
        reached = tuple(stub for stub in stubs.split(",") if stub != "-" and (op, stub) not in _UNREACHED)
        table[op] = LegacyStubs(impl, reached, header)
    return table
