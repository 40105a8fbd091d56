"""A trace joined with the coverage: which of the script's operators are missing, slow or wrong. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from opgen.diagnostics import shown
from opgen.tables import counted, plain_table
from opgen.trace.calls import Calls, Trace
from opgen.truth.record import Record, Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["Called", "Section", "Standing", "as_json", "called", "head", "sections"]

_FALLBACK = "cpu_fallback"
_MISSING = "missing"
# What the device says of an operator that can run neither there nor on the CPU.
_RAISED = re.compile(r"NotImplementedError: The operator '([\w:.]+)'")


class Standing(IntEnum):
    """In the order in which the report names them."""

    RAISED = 0
    MISSING = 1
    ON_CPU = 2
    FAILED = 3
    PARTIAL = 4
    OTHER = 5


@dataclass(frozen=True)
class Called:
    """One overload that the script called."""

    op: str
    calls: Calls
    family: str
    """The kernel family, or "missing"."""
    standing: Standing
    verdict: Verdict
    """Over the dtypes that it was called with, as far as they were tested; else over all."""
    reason: str | None
    """Why the verdict is not STRICT."""
    next: str | None
    """The command to go on with."""


@dataclass(frozen=True)
class Section:
    """A part of the report: a heading and a table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]

    def __str__(self) -> str:
        return f"{self.title}\n{plain_table(self.columns, self.rows, right=self.right)}"


def called(
    trace: Trace, listed: Container[str], upstream: Container[str], records: Mapping[str, Record]
) -> tuple[Called, ...]:
    """The overloads that were called, missing ones first, then those on the CPU, those with a bad verdict, and the
    rest; within each the longest first. `listed` have an entry, `upstream` can have one by `opgen new`."""
    raised = _RAISED.match(trace.error or "")
    ops = dict(trace.ops)
    if raised is not None:
        ops.setdefault(raised[1], Calls(1, 0.0, _MISSING))
    found = [
        _called(op, calls, op in listed, op in upstream, records.get(op), raised is not None and op == raised[1])
        for op, calls in ops.items()
    ]
    return tuple(sorted(found, key=lambda c: (c.standing, -c.calls.seconds, -c.calls.calls, c.op)))


def _called(op: str, calls: Calls, listed: bool, known: bool, record: Record | None, raised: bool) -> Called:
    verdict, reason = _judge(calls, record)
    if raised or (calls.on_cpu and not listed):
        standing = Standing.RAISED if raised else Standing.MISSING
        family, command = _MISSING, f"opgen new {op}" if known else None
    elif calls.on_cpu or calls.family == _FALLBACK:
        standing, family, command = Standing.ON_CPU, _FALLBACK, f"opgen explain {op}"
    else:
        bad = {Verdict.FAILED: Standing.FAILED, Verdict.PARTIAL: Standing.PARTIAL}
        standing, family = bad.get(verdict, Standing.OTHER), calls.family
        command = f"opgen test {op}" if standing is not Standing.OTHER else None
    return Called(op, calls, family, standing, verdict, reason, command)


def _judge(calls: Calls, record: Record | None) -> tuple[Verdict, str | None]:
    """The verdict over the dtypes that were used, and the reason of the first that decided it."""
    if record is None:
        return Verdict.UNTESTED, None
    used = {dtype: record.dtypes[dtype] for dtype in calls.dtypes if dtype in record.dtypes}
    tested = {dtype: result for dtype, result in used.items() if result.verdict is not Verdict.UNTESTED}
    results = tested or dict(record.dtypes)
    verdict = worst(result.verdict for result in results.values())
    reasons = (f"{d}: {r.reason}" for d, r in results.items() if r.verdict is verdict and r.reason is not None)
    return verdict, next(reasons, None)


def head(trace: Trace, found: Sequence[Called], script: str) -> str:
    """One paragraph: how many calls, how long, and how much of it not on the device."""
    calls = sum(c.calls.calls for c in found)
    seconds = sum(c.calls.seconds for c in found)
    counts = {s: sum(c.standing is s for c in found) for s in Standing}
    missing = counts[Standing.RAISED] + counts[Standing.MISSING]
    time = "in operators" if trace.blocking else "to launch operators"
    lines = [
        f"{script}: {counted(len(found), 'overload')}, {counted(calls, 'call')}, "
        f"{_time(seconds)} of {_time(trace.seconds)} {time}",
        f"{missing:,} missing, {counts[Standing.ON_CPU]:,} on the CPU on purpose, {counts[Standing.FAILED]:,} FAILED, "
        f"{counts[Standing.PARTIAL]:,} PARTIAL in the dtypes used",
    ]
    return "\n".join(lines)


_TITLES = {
    Standing.RAISED: "missing: raised, as it cannot run on the CPU instead",
    Standing.MISSING: "missing: ran on the CPU",
    Standing.ON_CPU: "ran on the CPU on purpose",
    Standing.FAILED: "FAILED: gives wrong values in some case of these dtypes",
    Standing.PARTIAL: "PARTIAL: right, but not in all that is promised",
    Standing.OTHER: "on the device",
}


def sections(found: Sequence[Called], top: int | None = None) -> list[Section]:
    """A table for each standing. `top` limits the last one, of operators that nothing is wrong with."""
    total = sum(c.calls.seconds for c in found)
    made = []
    for standing in Standing:
        chosen = [c for c in found if c.standing is standing]
        listed = chosen[:top] if standing is Standing.OTHER else chosen
        if not chosen:
            continue
        more = f" (the first {len(listed):,} of {len(chosen):,} by time)" if len(listed) < len(chosen) else ""
        last = {Standing.OTHER: "dtypes", Standing.FAILED: "why", Standing.PARTIAL: "why"}.get(standing, "next")
        rows = tuple(
            (
                c.op,
                f"{c.calls.calls:,}",
                _time(c.calls.seconds),
                f"{c.calls.seconds / total:.1%}" if total else "-",
                c.family,
                c.verdict.value,
                {
                    "dtypes": _dtypes(c.calls),
                    "why": shown(c.reason or ""),
                    "next": c.next or "no entry can be made for it",
                }[last],
            )
            for c in listed
        )
        columns = ("overload", "calls", "time", "share", "family", "verdict", last)
        made.append(Section(f"{_TITLES[standing]}{more}", columns, rows, frozenset({1, 2, 3})))
    return made


def as_json(trace: Trace, found: Sequence[Called], script: Sequence[str], status: int) -> dict[str, Any]:
    """What `opgen trace --format json` prints; seconds are self times."""
    return {
        "script": list(script),
        "exit": status,
        "error": trace.error,
        "torch": trace.torch,
        "seconds": trace.seconds,
        "blocking": trace.blocking,
        "totals": {
            "overloads": len(found),
            "calls": sum(c.calls.calls for c in found),
            "seconds": sum(c.calls.seconds for c in found),
            **{s.name.lower(): sum(c.standing is s for c in found) for s in Standing},
        },
        "overloads": [
            {
                "op": c.op,
                "standing": c.standing.name.lower(),
                "calls": c.calls.calls,
                "seconds": c.calls.seconds,
                "on_cpu": c.calls.on_cpu,
                "family": c.family,
                "dtypes": dict(c.calls.dtypes),
                "verdict": c.verdict.value,
                "reason": c.reason,
                "next": c.next,
            }
            for c in found
        ],
    }


def _dtypes(calls: Calls) -> str:
    return ", ".join(sorted(calls.dtypes, key=lambda dtype: -calls.dtypes[dtype]))


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"
