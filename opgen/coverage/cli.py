"""`opgen coverage`: the matrix as a table, as JSON, or as committed files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen.diagnostics import Diagnostics
from opgen.options import PathOption, format_option, torch_option, yaml_option
from opgen.report import report
from opgen.tables import print_table

if TYPE_CHECKING:
    from opgen.coverage.matrix import Matrix
    from opgen.upstream import TorchInstall

__all__ = ["command"]


@click.command(epilog="Example: opgen coverage --format json | jq .totals")
@yaml_option
@torch_option
@format_option
@click.option(
    "--write",
    "folder",
    type=PathOption(file_okay=False),
    help="Write README.md and coverage.json there.",
)
def command(yaml_path: Path | None, torch: TorchInstall | None, output: str, folder: Path | None) -> None:
    """Show the operator coverage matrix.

    Counted are the overloads for which the installed PyTorch has a CUDA kernel, less those that belong to one vendor's
    library (cuDNN, MIOpen, cuSPARSELt): that number is the denominator. Each is native or cpu_fallback (registered by
    an entry), composite (PyTorch's own kernel for any device), or missing. `verdicts` says by dtype what running the
    overload has shown.

    The exit status is 1 when the operator list has errors.
    """
    from opgen.backend import MUSA
    from opgen.coverage.matrix import measure
    from opgen.coverage.report import to_json, write_report
    from opgen.gen import Sources, analyse
    from opgen.project import find_project
    from opgen.truth.known import known_records

    diagnostics = Diagnostics()
    project = find_project()
    sources = Sources.of(project, yaml_path, torch=torch)
    analysis = analyse(sources, diagnostics, need_sources=False)
    records = known_records(project.root, sources, analysis)
    matrix = measure(analysis.registrations, analysis.upstream, MUSA, records)
    if output == "json":
        click.echo(to_json(matrix), nl=False)
    else:
        _print(matrix)
    report(diagnostics)
    if diagnostics.errors:
        raise SystemExit(1)
    if folder is not None:
        write_report(matrix, folder)
        click.echo(f"wrote {folder / 'README.md'} and {folder / 'coverage.json'}", file=sys.stderr)


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
    for title, counts in (("family", matrix.by_family()), ("kind", matrix.by_kind())):
        if counts:
            click.echo()
            print_table((title, "registered"), [(k, f"{n:,}") for k, n in counts.items()], right=frozenset({1}))
