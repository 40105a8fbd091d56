"""`opgen coverage`: the matrix as a table, as JSON, as a page and as committed files, and questions about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opgen.completion import OPERATOR
from opgen.diagnostics import Diagnostics, OpgenError
from opgen.options import PathOption, format_option, torch_option, yaml_option
from opgen.report import report
from opgen.tables import print_table

if TYPE_CHECKING:
    from opgen.coverage.matrix import Matrix
    from opgen.coverage.survey import Survey
    from opgen.upstream import TorchInstall

__all__ = ["command"]

_BACKENDS = ("cuda", "cpu", "mps", "xpu")
_VERDICTS = ("strict", "partial", "failed", "untested")


def _file(text: str) -> Any:
    return {"type": PathOption(dir_okay=False), "metavar": "FILE", "help": text}


@click.command(
    epilog="Example: opgen coverage --html coverage.html --fail-under 'strict>=55%' --fail-under 'failed<=0'"
)
@click.argument("op", type=OPERATOR, required=False)
@yaml_option
@torch_option
@format_option
@click.option("--missing", is_flag=True, help="List the overloads without a kernel.")
@click.option("--fallback", is_flag=True, help="List the overloads that run on the CPU on purpose.")
@click.option("--verdict", type=click.Choice(_VERDICTS, case_sensitive=False), help="List the overloads with it.")
@click.option(
    "--against", type=click.Choice(_BACKENDS), help="What that backend has in PyTorch's tree and we have not."
)
@click.option("--since", metavar="COMMIT", help="What has changed since that commit's coverage.json.")
@click.option(
    "--fail-under",
    "bounds",
    metavar="BOUND",
    multiple=True,
    help="Exit with 1 unless it holds: 62.5 (percent registered), 'strict>=50%', 'failed<=0'; may be repeated.",
)
@click.option("--html", **_file("Write the matrix as one self-contained page."))
@click.option(
    "--csv", **_file("Write a line for each overload, vendor-only ones (not in the JSON) last; - is standard output.")
)
@click.option("--badge", **_file("Write a badge (SVG)."))
@click.option(
    "--write",
    "folder",
    type=PathOption(file_okay=False),
    help="Write README.md, coverage.json and coverage.svg there.",
)
def command(
    op: str | None,
    yaml_path: Path | None,
    torch: TorchInstall | None,
    output: str,
    missing: bool,
    fallback: bool,
    verdict: str | None,
    against: str | None,
    since: str | None,
    bounds: tuple[str, ...],
    html: Path | None,
    csv: Path | None,
    badge: Path | None,
    folder: Path | None,
) -> None:
    """Show the operator coverage matrix, or what it says about OP.

    Counted are the overloads for which the installed PyTorch has a CUDA kernel, less those that belong to one vendor's
    library (cuDNN, MIOpen, cuSPARSELt): that number is the denominator. Each is native or cpu_fallback (registered by
    an entry), composite (PyTorch's own kernel for any device), or missing; and STRICT, PARTIAL, FAILED or UNTESTED, by
    dtype, as `opgen truth` has found by running it.

    OP is an overload (`lerp.Scalar`) or a name that several overloads share (`lerp`), as for `opgen explain`.

    The exit status is 1 when the operator list has errors or a bound does not hold.
    """
    listing = missing or fallback or verdict is not None
    asked = [name for name, given in (("OP", op), ("--against", against), ("--since", since)) if given]
    asked += ["--missing, --fallback and --verdict"] if listing else []
    if len(asked) > 1:
        raise click.UsageError(f"{asked[0]} and {asked[1]} are questions of their own: ask one at a time")
    to_stdout = csv is not None and str(csv) == "-"
    if to_stdout and (asked or output == "json"):
        raise click.UsageError("--csv - fills standard output: give it a file, or ask for nothing else")
    _check_outputs({"--html": html, "--csv": None if to_stdout else csv, "--badge": badge}, folder)
    from opgen.coverage.survey import survey

    diagnostics = Diagnostics()
    found = survey(yaml_path, torch, diagnostics)
    rules = _rules(bounds, found.matrix)
    if op is not None:
        _operator(op, found, output)
    elif listing:
        _list(found, missing, fallback, verdict, output)
    elif against is not None:
        _against(found, against, output)
    elif since is not None:
        _since(found, since, output)
    elif to_stdout:
        _write_csv(found, None)
    elif output == "json":
        from opgen.coverage.report import to_json

        click.echo(to_json(found.matrix), nl=False)
    else:
        _print(found.matrix)
    report(diagnostics)
    if diagnostics.errors:
        raise SystemExit(1)
    _write(found, html, None if to_stdout else csv, badge, folder)
    broken = [said for rule in rules if (said := rule.broken(found.matrix.totals(), found.matrix.denominator))]
    if broken:
        raise OpgenError("; ".join(broken), hint="`opgen coverage --since COMMIT` shows what has changed")


def _check_outputs(files: Mapping[str, Path | None], folder: Path | None) -> None:
    """Two outputs in one file would leave the second. Devices and pipes take both."""
    from opgen.coverage.files import same_file
    from opgen.coverage.report import FILES

    asked = [(option, path) for option, path in files.items() if path is not None]
    asked += [("--write", folder / name) for name in FILES] if folder is not None else []
    for i, (option, path) in enumerate(asked):
        for other, again in asked[:i]:
            if same_file(path, again):
                raise click.UsageError(f"{other} and {option} would both write {path}: give each a file of its own")


def _rules(bounds: tuple[str, ...], matrix: Matrix) -> list[Any]:
    from opgen.coverage.rules import parse_rule

    try:
        return [parse_rule(bound, matrix.totals()) for bound in bounds]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--fail-under'") from None


def _operator(op: str, found: Survey, output: str) -> None:
    from opgen.coverage.views import print_operator

    rows = found.operator(op)
    if output == "json":
        click.echo(json.dumps([{**row.as_json(), "note": note} for row, note in rows], indent=2))
    else:
        print_operator(rows)


def _list(found: Survey, missing: bool, fallback: bool, verdict: str | None, output: str) -> None:
    from opgen.coverage.matrix import State
    from opgen.coverage.views import print_rows

    states = {
        *((State.MISSING, State.SKELETON) if missing else ()),
        *((State.CPU_FALLBACK,) if fallback else ()),
    }
    rows = [
        row
        for row in found.rows
        if (not states or row.state in states) and (verdict is None or row.verdict.value == verdict.upper())
    ]
    if output == "json":
        click.echo(json.dumps([row.as_json() for row in rows], indent=2))
        return
    words = [*(["missing"] if missing else []), *(["cpu_fallback"] if fallback else [])]
    print_rows(rows, " ".join(filter(None, [" or ".join(words), verdict])))


def _against(found: Survey, backend: str, output: str) -> None:
    from opgen.coverage.against import gap
    from opgen.coverage.views import print_gap

    answer = gap(backend, found.registered, found.upstream)
    if output == "json":
        click.echo(json.dumps(answer.as_json(), indent=2))
    else:
        print_gap(answer, found.backend.name)


def _since(found: Survey, commit: str, output: str) -> None:
    from opgen.coverage.since import changes, committed
    from opgen.coverage.views import print_changes

    short, before = committed(found.root, commit)
    answer = changes(short, before, found.matrix.as_json())
    if output == "json":
        click.echo(json.dumps(answer.as_json(), indent=2))
    else:
        print_changes(answer)


def _write(found: Survey, html: Path | None, csv: Path | None, badge: Path | None, folder: Path | None) -> None:
    """The files asked for, each whole or not at all."""
    from opgen.coverage.files import write_file

    written: list[Path] = []
    if html is not None:
        from opgen.coverage.page import render_page

        write_file(html, render_page(found.matrix, found.rows, found.title), "name a file with --html FILE")
        written.append(html)
    if csv is not None:
        _write_csv(found, csv)
        written.append(csv)
    if badge is not None:
        write_file(badge, found.badge(), "name a file with --badge FILE")
        written.append(badge)
    if folder is not None:
        from opgen.coverage.report import write_report

        written += write_report(found.matrix, found.rows, folder)
    for path in written:
        click.echo(f"wrote {path}", file=sys.stderr)


def _write_csv(found: Survey, path: Path | None) -> None:
    from opgen.coverage.files import write_file
    from opgen.coverage.table import as_csv

    text = as_csv(found.rows, found.matrix.vendor_only)
    if path is None:
        click.echo(text, nl=False)
    else:
        write_file(path, text, "name a file with --csv FILE")


def _print(matrix: Matrix) -> None:
    from opgen.coverage.report import shown_states

    totals = matrix.totals()
    click.echo(
        f"PyTorch {matrix.torch_version}: {matrix.denominator:,} overloads with a CUDA kernel "
        f"({totals['vendor_only']} vendor-only ones not counted), {totals['registered']:,} registered"
    )
    click.echo()
    rows = [
        (s.value, f"{matrix.count(s):,}", f"{matrix.count(s) / max(matrix.denominator, 1):.1%}")
        for s in shown_states(matrix)
    ]
    print_table(("state", "overloads", "share"), rows, right=frozenset({1, 2}))
    if any(overload.record is not None for overload in matrix.overloads):
        click.echo()
        verdicts = [
            (verdict.value, f"{count:,}", f"{count / max(matrix.denominator, 1):.1%}")
            for verdict, count in matrix.by_verdict().items()
        ]
        print_table(("verdict", "overloads", "share"), verdicts, right=frozenset({1, 2}))
    for title, counts in (("family", matrix.by_family()), ("kind", matrix.by_kind())):
        if counts:
            click.echo()
            print_table((title, "registered"), [(k, f"{n:,}") for k, n in counts.items()], right=frozenset({1}))
