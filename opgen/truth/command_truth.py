"""The verb `opgen truth`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from opgen.completion import OPERATOR
from opgen.diagnostics import OpgenError
from opgen.options import format_option
from opgen.truth.options import campaign_options, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opgen.truth.campaign import Run
    from opgen.truth.plan import Planned
    from opgen.truth.record import Record

__all__ = ["command"]

_SHOWN = 60
_LOG_SECONDS = 30


@click.command(epilog="Example: opgen truth --jobs 2 && opgen coverage --write coverage_report")
@click.argument("ops", metavar="[OP]...", nargs=-1, type=OPERATOR)
@campaign_options
@click.option("--fresh", is_flag=True, help="Run what is known and still holds, too.")
@format_option
def command(
    ops: Sequence[str],
    cases: int,
    seed: int,
    dtypes: Sequence[str],
    jobs: int | None,
    timeout: float,
    load: Sequence[str],
    build: bool,
    fresh: bool,
    output: str,
) -> None:
    """Run every overload on the device, compare it with the CPU, and keep the verdicts.

    OP is an overload (`tril.out`), or a name that several share (`tril`); without any, all that have a kernel are run.
    Each runs in a process of its own, so a crash or a hang is a verdict (FAILED) and not the end. Records lie in
    build/truth/, one file for each overload, kept as soon as they are there: a run that was interrupted or killed goes
    on where it was. What has not changed since it was run (kernel, headers, toolkit, test bench, PyTorch) is not run
    again. `opgen coverage` shows the verdicts in its matrix.

    A record is never replaced by one that says less while it still holds: a run with --dtype is merged into it by
    dtype, one with fewer --cases is shown and not kept. Of operators that come by --load alone records are kept, too,
    beside the matrix.

    The exit status says whether everything was run, not how it went: it is 1 where an overload could not be run, or
    what --load names not be loaded.
    """
    from opgen.truth.campaign import campaign
    from opgen.truth.session import bring_up_to_date, open_session, select
    from opgen.truth.store import COMMITTED, committed_records, valid_records
    from opgen.truth.tell import not_run, print_worst, tell_unkept, totals, worst_first

    settings = settings_of(cases, seed, dtypes, jobs, timeout, load)
    session = open_session()
    chosen = select(session, ops, loaded=bool(load)) if ops else list(session.planned.values())
    planned = [overload for overload in chosen if not _lacks_kernel(overload)]
    if not planned:
        raise OpgenError("nothing to run: none of these overloads has a kernel", hint="`opgen explain OP` tells more")
    if build:
        bring_up_to_date(session, settings.jobs)
    names = [overload.op for overload in planned]
    known = valid_records(
        session.store.load_all(), committed_records(session.project.root / COMMITTED), session.digests, names
    )
    runs: list[Run] = []
    with _progress(len(planned)) as step:
        for run in campaign(planned, settings, session.digests, session.project.root, session.store, known, fresh):
            runs.append(run)
            step(run.record)
    records = [run.record for run in runs if run.failure is None]
    if output == "json":
        document = {
            "totals": totals(records),
            "records": [r.to_json() for r in worst_first(records)],
            "unkept": {run.record.op: run.unkept for run in runs if run.unkept is not None},
            "failures": {run.record.op: run.failure.message for run in runs if run.failure is not None},
        }
        click.echo(json.dumps(document, indent=1))
    else:
        print_worst(records, _SHOWN)
    tell_unkept(runs)
    if any(run.failure is not None for run in runs):
        raise not_run(runs)


def _lacks_kernel(overload: Planned) -> bool:
    """The matrix knows of those without being told."""
    return bool(overload.skipped and overload.skipped.startswith("missing"))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Record], None]]:
    """A bar on a terminal; elsewhere a line every half minute, so that a log shows that something moves."""
    from opgen.progress import on_terminal

    if not on_terminal(sys.stderr):
        done, last = 0, time.monotonic()

        def log(record: Record) -> None:
            nonlocal done, last
            done += 1
            if time.monotonic() - last >= _LOG_SECONDS:
                last = time.monotonic()
                print(f"running {done}/{total} {record.op}", file=sys.stderr, flush=True)

        yield log
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from opgen.truth.record import Verdict

    texts = TextColumn("running"), TextColumn("{task.description}")
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), texts[1])
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        faults = dict.fromkeys((Verdict.FAILED, Verdict.PARTIAL), 0)

        def step(record: Record) -> None:
            if record.verdict in faults:
                faults[record.verdict] += 1
            counts = ", ".join(f"{count} {verdict.value}" for verdict, count in faults.items())
            bar.update(task, advance=1, description=f"{counts}  {record.op[:40]}")

        yield step
