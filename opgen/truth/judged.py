"""Joins what PyTorch's own databases have shown (tests/judge) to the records: one verdict from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from opgen.truth.judging import sentence
from opgen.truth.record import DtypeResult, Record, Verdict, worst

if TYPE_CHECKING:
    from opgen.truth.judges import JudgeCounts

__all__ = ["with_databases"]


def with_databases(records: Mapping[str, Record], counts: Mapping[tuple[str, str], JudgeCounts]) -> dict[str, Record]:
    """The records, each dtype's with the tests of the databases that ran the overload; ``counts`` is what
    `opgen.truth.judges.read` gives.

    A test about the overload that failed makes a dtype FAILED, a fault that is known (skips.yaml) PARTIAL. Tests that
    are about no dtype, of errors say, count for the first one that the device supports. Passing tests alone are no
    verdict: an overload may merely have run in them.
    """
    by_op: dict[str, dict[str, JudgeCounts]] = {}
    for (op, dtype), found in counts.items():
        by_op.setdefault(op, {})[dtype] = found
    return {op: _joined(record, by_op[op]) if op in by_op else record for op, record in records.items()}


def _joined(record: Record, counts: Mapping[str, JudgeCounts]) -> Record:
    first = next((name for name, result in record.dtypes.items() if result.supported), None)
    shown: dict[str, list[JudgeCounts]] = {}
    for dtype, found in sorted(counts.items(), reverse=True):  # those about no dtype last
        shown.setdefault(dtype or first or "", []).append(found)
    dtypes = {name: _with(result, shown[name]) if name in shown else result for name, result in record.dtypes.items()}
    return replace(record, dtypes=dtypes)


def _with(result: DtypeResult, found: Sequence[JudgeCounts]) -> DtypeResult:
    failed, known = sum(counts.failed for counts in found), sum(counts.skipped for counts in found)
    result = replace(result, judged=sum(counts.passed for counts in found), judge_failed=failed + known)
    shown = Verdict.FAILED if failed else Verdict.PARTIAL if known else Verdict.UNTESTED
    verdict = worst([result.verdict, shown])
    if verdict is result.verdict:
        return result
    blamed = next(counts for counts in found if (counts.failed if failed else counts.skipped))
    reason = sentence(blamed.first_reason or "no reason was recorded")
    return replace(result, verdict=verdict, reason=reason if failed else f"known: {reason}")
