"""Records for people: tables, totals, the order worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from opgen.diagnostics import OpgenError
from opgen.tables import counted, print_table
from opgen.truth.record import DtypeResult, Record, Verdict

if TYPE_CHECKING:
    from opgen.truth.campaign import Run

__all__ = ["dtype_rows", "not_run", "print_scripts", "print_worst", "tell_unkept", "totals", "worst_first"]

_NAMED = 5
_FAILURES = 10
_ORDER = (Verdict.FAILED, Verdict.PARTIAL, Verdict.UNTESTED, Verdict.STRICT)
_COLOURS = {Verdict.FAILED: "red", Verdict.PARTIAL: "yellow", Verdict.STRICT: "green"}


def worst_first(records: Iterable[Record]) -> list[Record]:
    """FAILED, PARTIAL, UNTESTED, STRICT; by name within each."""
    return sorted(records, key=lambda record: (_ORDER.index(record.verdict), record.op))


def totals(records: Iterable[Record]) -> dict[str, int]:
    """Overloads by verdict, best first."""
    counts = Counter(record.verdict for record in records)
    return {verdict.value.lower(): counts[verdict] for verdict in Verdict}


def families(result: DtypeResult) -> str:
    """The kernels that ran: `mudnn 20, cpu_fallback 3`, or the name alone where there was but one family."""
    if len(result.families) == 1:
        return next(iter(result.families))
    return ", ".join(f"{name} {count}" for name, count in sorted(result.families.items(), key=lambda i: -i[1]))


def dtype_rows(records: Iterable[Record]) -> list[tuple[str, ...]]:
    """A row for each overload and main dtype: op, dtype, verdict, cases, compared, family, reason."""
    rows: list[tuple[str, ...]] = []
    for record in records:
        for dtype, result in record.dtypes.items():
            verdict = result.verdict.value if result.supported else "unsupported"
            counts = (str(result.cases), str(result.agreed + result.failed))
            rows.append((record.op, dtype, verdict, *counts, families(result), result.reason or ""))
        if not record.dtypes:
            rows.append((record.op, "", record.verdict.value, "0", "0", "", record.why or ""))
    return rows


def print_worst(records: Sequence[Record], limit: int) -> None:
    """What is FAILED or PARTIAL, worst first, then the totals."""
    faulty = [record for record in worst_first(records) if record.verdict in (Verdict.FAILED, Verdict.PARTIAL)]
    if faulty:
        print_table(("operator", "verdict", "reason"), [(r.op, r.verdict.value, r.why or "") for r in faulty[:limit]])
        if len(faulty) > limit:
            click.echo(f"... and {len(faulty) - limit} more: `opgen coverage` shows all")
        click.echo()
    if not records:
        return
    shown = ", ".join(f"{count:,} {name.upper()}" for name, count in totals(records).items())
    click.echo(f"{counted(len(records), 'overload')}: {shown}")


def tell_unkept(runs: Iterable[Run]) -> None:
    """On standard error: which verdicts did not take the place of those that are kept, and why."""
    by_reason: dict[str, list[str]] = {}
    for run in runs:
        if run.unkept is not None:
            by_reason.setdefault(run.unkept, []).append(run.record.op)
    for reason, ops in by_reason.items():
        click.echo(f"not kept: what was run of {_some(ops)}: {reason}", err=True)


def not_run(runs: Iterable[Run]) -> OpgenError:
    """What to end with where overloads could not be run: their records are as they were."""
    failed = [(run.record.op, run.failure.message) for run in runs if run.failure is not None]
    said = "; ".join(f"{op}: {message}" for op, message in failed[:_FAILURES])
    more = f"; and {len(failed) - _FAILURES} more" if len(failed) > _FAILURES else ""
    how_many = counted(len(failed), "overload")
    return OpgenError(
        f"{how_many} could not be run: {said}{more}",
        hint="no record was made of that; what was known of them is as it was",
    )


def _some(ops: Sequence[str]) -> str:
    return ", ".join(ops) if len(ops) <= _NAMED else f"{', '.join(ops[:_NAMED])} and {len(ops) - _NAMED} more"


def print_scripts(records: Iterable[Record], limit: int) -> None:
    """Programs that reproduce the first failures, one for each overload."""
    shown = 0
    for record in worst_first(records):
        found = [(dtype, r) for dtype, r in record.dtypes.items() if r.script and r.verdict is record.verdict]
        if not found or record.verdict not in (Verdict.FAILED, Verdict.PARTIAL):
            continue
        if shown == limit:
            click.echo("\nFor the others name them alone: `opgen test OVERLOAD`.")
            return
        dtype, result = found[0]
        shown += 1
        click.echo(f"\n{click.style(record.op, bold=True)}, {dtype}: {result.reason}\nTo reproduce:\n\n{result.script}")
