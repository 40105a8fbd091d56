"""Records for people: tables, totals, the order worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import click

from opgen.tables import print_table
from opgen.truth.record import DtypeResult, Record, Verdict

__all__ = ["dtype_rows", "print_scripts", "print_worst", "totals", "worst_first"]

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
    shown = ", ".join(f"{count:,} {name.upper()}" for name, count in totals(records).items())
    click.echo(f"{len(records):,} overloads: {shown}")


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
