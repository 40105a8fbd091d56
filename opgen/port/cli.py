"""`opgen port SRC --out DIR`, also `python -m opgen.port`: what the build runs for kernels/ported."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from opgen.diagnostics import Diagnostics, OpgenError
from opgen.options import PathOption
from opgen.port.files import TreeReport, port_file, port_tree, ported_path
from opgen.port.mapping import load_mapping
from opgen.report import report, reporter


@click.command(name="port", epilog="Example: opgen port kernels/ported --out build/ported")
@click.argument("source", type=PathOption(exists=True))
@click.option("--out", required=True, type=PathOption(), help="Folder, or the .mu/.muh file for a file.")
@click.option("--ignore", multiple=True, type=PathOption(), help="Folder below SOURCE to leave out; repeatable.")
def command(source: Path, out: Path, ignore: tuple[Path, ...]) -> None:
    """Port CUDA SOURCE (a file or a folder) to MUSA. Only files whose port changed are written."""
    try:
        if source.is_dir():
            done = port_tree(source, out, ignore=ignore)
        else:
            mapping = load_mapping()
            names_a_file = out.suffix in mapping.suffixes.values()
            target = out if names_a_file else out / ported_path(Path(source.name), mapping)
            done = TreeReport((port_file(source, target, mapping),))
    except OpgenError as error:
        reporter().fail(error)
        sys.exit(1)
    # Files without problems have been ported.
    report(Diagnostics(list(done.problems)), outcome=None)
    sys.exit(1 if done.problems else 0)
