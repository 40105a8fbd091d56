"""`opgen list`: what every entry of the operator list amounts to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen.diagnostics import Diagnostics
from opgen.options import format_option, torch_option, yaml_option
from opgen.report import report
from opgen.tables import print_table

if TYPE_CHECKING:
    from opgen.classify import Registration
    from opgen.upstream import TorchInstall

__all__ = ["command", "rows"]


def rows(registrations: Iterable[Registration]) -> list[dict[str, object]]:
    """One row for each entry and dispatch key, in the order of the operator list."""
    from opgen.emit.files import record

    return [record(registration) for registration in registrations]


@click.command(epilog="Example: opgen list --format json | jq '.[] | select(.family == \"ported\") | .op'")
@yaml_option
@torch_option
@format_option
def command(yaml_path: Path | None, torch: TorchInstall | None, output: str) -> None:
    """Show every entry's kind, kernel, family and source.

    One row for each entry and dispatch key. `kind` is legacy, legacy_meta, customized or unstructured; `form` says for
    unstructured ones where the function comes from: own, reused, autogen, new or fallback. `kernel` is the
    implementation's name (for legacy: upstream's), `family` is mudnn, ported, cpu_fallback or upstream, `source` the
    file that defines the kernel or registers its stub, and `line` the line of the entry in the operator list.

    Kernels need not exist: their `source` is then null. Entries that cannot be classified are reported on standard
    error and left out, with exit status 1.
    """
    from opgen.gen import Sources, analyse
    from opgen.project import find_project

    diagnostics = Diagnostics()
    analysis = analyse(Sources.of(find_project(), yaml_path, torch=torch), diagnostics, need_sources=False)
    listed = rows(analysis.registrations)
    if output == "json":
        click.echo(json.dumps(listed, indent=2))
    else:
        _print(listed)
    report(diagnostics)
    if diagnostics.errors:
        raise SystemExit(1)


def _print(listed: Iterable[Mapping[str, object]]) -> None:
    columns = ("op", "kind", "form", "dispatch_key", "kernel", "family", "source", "line")
    cells = [[_cell(row[column]) for column in columns] for row in listed]
    print_table(columns, cells, right=frozenset({len(columns) - 1}))


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
