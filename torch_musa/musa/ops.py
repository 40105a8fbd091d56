"""What operators do: which ran on the CPU, and which kernel family served the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

import torch

from torch_musa import _backend

_C = _backend.extension()

_Calls = tuple[int, int, Mapping[torch.dtype, int]]
"""Calls, nanoseconds, calls by dtype."""

CPU_FALLBACK = "cpu_fallback"
COMPOSITE = "composite"


def fallback_counts() -> dict[str, int]:
    """Calls that ran on the CPU since the start or the last reset, by operator ("sinc.out")."""
    return dict(_C._fallback_counts())


def reset_fallback_counts() -> None:
    """Lets fallback_counts start again from nothing."""
    _C._reset_fallback_counts()


@lru_cache(maxsize=1)
def op_table() -> Mapping[str, Mapping[str, str]]:
    """The registered operators of this build: overload name -> kind, form, family, kernel, source and line."""
    table = json.loads(_backend.build().op_table.read_text())
    return {
        op: registration
        for op, registrations in table["ops"].items()
        for registration in registrations
        if registration["dispatch_key"] == "PrivateUse1"  # not its quantized, sparse and autograd relatives
    }


class OpCounts(Mapping[str, int]):
    """Calls by operator, as `count_ops` counted them.

    An operator made of others ("linear") is counted, and so are those it is made of.
    """

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._nanoseconds: Counter[str] = Counter()
        self._dtypes: dict[str, Counter[torch.dtype]] = {}
        self._on_cpu: Counter[str] = Counter()
        self._on_host: Counter[str] = Counter()

    def __getitem__(self, op: str) -> int:
        return self._calls[op]

    def __contains__(self, op: object) -> bool:
        return op in self._calls

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __repr__(self) -> str:
        return f"OpCounts({dict(self._calls)})"

    def seconds(self, op: str) -> float:
        """Host time inside the operator, less that inside the counted operators it called.

        Where launches block (MUSA_LAUNCH_BLOCKING=1) that is the time its kernels ran, else the time to launch them.
        """
        return self._nanoseconds[op] / 1e9

    def dtypes(self, op: str) -> dict[torch.dtype, int]:
        """Calls by the dtype of the first musa tensor among the operands, or else the results."""
        return dict(self._dtypes.get(op, {}))

    def fallbacks(self, op: str) -> int:
        """Calls that ran on the CPU."""
        return self._on_cpu[op]

    def family(self, op: str) -> str:
        """mudnn, ported, upstream (PyTorch's own code on our kernels or on none), cpu_fallback, or composite."""
        if op in op_table():
            return op_table()[op]["family"]
        return CPU_FALLBACK if op in self._on_cpu else COMPOSITE

    @property
    def on_host(self) -> dict[str, int]:
        """Calls that operators made on tensors of the CPU which nobody had given them: work taken off the device.

        What the CPU fallback runs is in `fallback_counts`; here is what kernels take to the CPU by themselves. Tensors
        of one element are numbers and do not count.
        """
        return dict(self._on_host)

    def by_family(self) -> dict[str, int]:
        """Calls by kernel family, the busiest first."""
        totals: Counter[str] = Counter()
        for op, calls in self._calls.items():
            totals[self.family(op)] += calls
        return dict(totals.most_common())

    def summary(self) -> str:
        """One line: "mudnn 812, ported 240, upstream 96, composite 380; CPU fallback 0"."""
        totals = self.by_family()
        on_cpu = totals.pop(CPU_FALLBACK, 0)
        families = ", ".join(f"{family} {calls}" for family, calls in totals.items())
        return f"{families or 'no operators'}; CPU fallback {on_cpu}"

    def _fill(self, before: Mapping[str, _Calls], after: Mapping[str, _Calls]) -> None:
        for op, (calls, nanoseconds, dtypes) in after.items():
            had_calls, had_nanoseconds, had_dtypes = before.get(op, (0, 0, {}))
            if calls > had_calls:
                self._calls[op] = calls - had_calls
                self._nanoseconds[op] = nanoseconds - had_nanoseconds
                self._dtypes[op] = Counter(dtypes) - Counter(had_dtypes)


@contextmanager
def count_ops() -> Iterator[OpCounts]:
    """Counts and times the operators that run on musa tensors inside the block, on every thread, by overload name.

    The result is filled when the block ends.

    >>> with torch.musa.count_ops() as counts:
    ...     loss = model(x).sum()
    >>> print(counts.summary())
    """
    counts = OpCounts()
    calls_before: Mapping[str, _Calls] = _C._op_counter_calls()
    host_before = Counter(_C._op_counter_host_calls())
    fallback_before = Counter(_C._fallback_counts())
    _C._op_counter_start()
    try:
        yield counts
    finally:
        _C._op_counter_stop()
        counts._fill(calls_before, _C._op_counter_calls())
        counts._on_host.update(Counter(_C._op_counter_host_calls()) - host_before)
        counts._on_cpu.update(Counter(_C._fallback_counts()) - fallback_before)
