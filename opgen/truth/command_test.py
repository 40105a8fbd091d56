"""The verb `opgen test`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opgen.completion import OPERATOR
from opgen.options import format_option
from opgen.truth.options import campaign_options, settings_of

if TYPE_CHECKING:
    from opgen.truth.record import Record

__all__ = ["command"]

_SCRIPTS = 3


@click.command(epilog="Example: opgen test lerp.Scalar --cases 200 --dtype float32")
@click.argument("op", type=OPERATOR)
@campaign_options
@click.option("--judge/--no-judge", default=True, show_default=True, help="Ask PyTorch's own databases, too.")
@format_option
def command(
    op: str,
    cases: int,
    seed: int,
    dtypes: Sequence[str],
    jobs: int | None,
    timeout: float,
    load: Sequence[str],
    build: bool,
    judge: bool,
    output: str,
) -> None:
    """Run one operator on the device and compare everything about it with the CPU: a verdict for each dtype.

    OP is an overload, which brings its functional, in-place and out= relatives, or a name that several share. Run are
    random cases of every dtype, gradients, and the tests of PyTorch's own operator database that name it. Nothing is
    kept; `opgen truth` keeps verdicts for the matrix.

    The exit status is 1 when a verdict is not STRICT for a dtype that the device supports, or something could not be
    run.
    """
    from contextlib import nullcontext
    from dataclasses import asdict, replace

    from opgen.report import reporter
    from opgen.tables import print_table
    from opgen.truth.campaign import campaign
    from opgen.truth.databases import asked
    from opgen.truth.record import Verdict
    from opgen.truth.session import bring_up_to_date, open_session, select
    from opgen.truth.tell import dtype_rows, not_run, print_scripts

    settings = replace(settings_of(cases, seed, dtypes, jobs, timeout, load), shrink=True)
    session = open_session()
    planned = select(session, [op], group=True, loaded=bool(load))
    if build:
        bring_up_to_date(session, settings.jobs)
    with asked(session.project.root, op) if judge else nullcontext() as pending:
        runs = {r.record.op: r for r in campaign(planned, settings, session.digests, session.project.root)}
        answer = pending.answer() if pending is not None else None
    records = [runs[overload.op].record for overload in planned]
    if output == "json":
        document = {"databases": asdict(answer) if answer is not None else None, "records": _as_json(records)}
        click.echo(json.dumps(document, indent=1))
    else:
        rows = dtype_rows(records)
        print_table(
            ("overload", "dtype", "verdict", "cases", "compared", "family", "reason"), rows, right=frozenset({3, 4})
        )
        if answer is not None:
            click.echo(f"\n{answer.summary}")
            for test, message in answer.failures:
                click.echo(f"  {test}: {message}")
        print_scripts(records, _SCRIPTS)
    click.echo(
        f"{sum(r.seconds for r in records):.1f} s of CPU time", err=reporter().prose_to_stderr or output == "json"
    )
    if any(run.failure is not None for run in runs.values()):
        raise not_run(runs.values())
    wrong = any(record.verdict is not Verdict.STRICT for record in records if _counts(record))
    if wrong or (answer is not None and answer.failures):
        raise SystemExit(1)


def _as_json(records: Sequence[Record]) -> list[dict[str, object]]:
    return [{**record.to_json(), "verdict": record.verdict.value} for record in records]


def _counts(record: Record) -> bool:
    """An overload all of whose dtypes the device refuses by name is unsupported, and no failure."""
    return not record.dtypes or any(result.supported for result in record.dtypes.values())
