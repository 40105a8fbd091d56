"""`opgen versions`: does the tree generate and compile for these PyTorch releases?"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import date
from pathlib import Path

import click

from opgen.diagnostics import Location, OpgenError
from opgen.options import PathOption, cache_option, format_option
from opgen.report import diagnostics_option

__all__ = ["command"]


@click.command(epilog="Example: opgen versions 2.9.1 2.15.0 --write docs/versions.md")
@click.argument("releases", metavar="DIR_OR_VERSION...", nargs=-1, required=True)
@cache_option
@click.option(
    "--jobs", "-j", type=click.IntRange(1), default=os.cpu_count(), help="Compilers at once; default: all cores."
)
@click.option("--write", "table", type=PathOption(dir_okay=False), help="Keep the table of results in this file.")
@format_option
@diagnostics_option()
def command(releases: tuple[str, ...], cache: Path | None, jobs: int, table: Path | None, output: str) -> None:
    """Generate and syntax-check the whole tree for each of these PyTorch releases.

    Nothing is installed: of each release, torchgen and the headers are fetched and kept (see opgen diff). Checked are
    the generated registrations, all kernels (ported ones after porting), the device, the bindings and the toolkit, with
    the commands of the real build, but without generating code. What has passed and has not changed since is not
    checked again, so an interrupted run goes on where it was.

    The exit status is 1 when a release does not generate without a diagnostic, or a source fails.
    """
    from opgen.project import find_project
    from opgen.releases.locate import find_release, release_cache
    from opgen.releases.progress import progress_shown
    from opgen.releases.versions import Outcome, check_release, merge, read_rows, render
    from opgen.tables import print_table

    project = find_project()
    outcomes: list[Outcome] = []
    for text in releases:
        with progress_shown() as progress:
            install = find_release(text, release_cache(cache), progress)
            what = f"checking torch {install.release}"
            progress(what, 0, 0)
            outcome = check_release(
                project,
                install,
                jobs,
                date.today().isoformat(),
                lambda done, total, step, what=what: progress(what, done, total),  # type: ignore[misc]
            )
        outcomes.append(outcome)
        if outcome.text:
            click.echo(outcome.text, err=True)
        state = "ok" if outcome.ok else "FAILED"
        click.echo(
            f"torch {install.release}: {state}, {outcome.checked} of {outcome.row.sources} sources looked at "
            f"({outcome.seconds:.0f} s)",
            err=True,
        )
        if table is not None:
            # After each release, so that an interrupted run keeps what it has found.
            _write(table, render(merge(read_rows(table), [outcome.row])))
    if output == "json":
        click.echo(json.dumps([{**asdict(o.row), "ok": o.ok, "messages": o.text} for o in outcomes], indent=1))
    else:
        columns = ("PyTorch", "entries", "registrations", "sources", "failed", "compiler", "date")
        print_table(columns, [o.row.cells for o in outcomes], right=frozenset({1, 2, 3, 4}))
    if not all(outcome.ok for outcome in outcomes):
        raise SystemExit(1)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OpgenError(f"cannot write the table: {error.strerror}", Location(str(path))) from None
