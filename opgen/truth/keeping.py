"""Which of two records of an overload is kept: what says less never takes the place of what says more and still holds.

A run of some dtypes only, with the seed and the number of cases of the kept record, is merged into that by dtype. A
run with fewer cases, or of fewer dtypes in any other way, is shown and not kept. Any other run replaces the record, and
every run replaces one that holds no more. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opgen.truth.record import Record

__all__ = ["merged_with"]


def merged_with(
    before: Record | None, now: Record, digest: Callable[[str, tuple[str, ...]], str]
) -> tuple[Record, str | None]:
    """The record to keep, and None; or ``now`` and why it is not kept. ``before`` is the kept record where it holds,
    and ``digest`` gives that of an overload inside which these operators ran."""
    if before is None:
        return now, None
    if now.asked < before.asked:
        return now, f"it has {_cases(now)}, the record that is kept {before.asked}"
    if not now.complete and (now.seed, now.asked) == (before.seed, before.asked):
        calls = tuple(sorted({*before.calls, *now.calls}))
        return replace(
            now,
            dtypes={**before.dtypes, **now.dtypes},
            complete=before.complete,
            calls=calls,
            digest=digest(now.op, calls),
            seconds=round(before.seconds + now.seconds, 2),
            reason=None if before.dtypes or now.dtypes else now.reason,
        ), None
    if before.dtypes and not now.dtypes:
        return now, "it could compare nothing, and the record that is kept could"
    if not now.complete and (before.complete or not now.dtypes.keys() >= before.dtypes.keys()):
        other = "another seed" if now.seed != before.seed else "more cases"
        return now, f"it has {other} and not all the dtypes of the record that is kept"
    return now, None


def _cases(record: Record) -> str:
    return f"{record.asked} case{'s' * (record.asked != 1)} of each dtype"
