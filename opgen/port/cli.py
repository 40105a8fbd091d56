"""`opgen port SRC --out DIR`, also `python -m opgen.port`: what the build runs for kernels/ported."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from opgen.architectures import ARCHITECTURES, architectures
from opgen.diagnostics import Diagnostics, Location, OpgenError
from opgen.options import PathOption
from opgen.port.files import ported_path, write_atomically
from opgen.port.mapping import Mapping, load_mapping, without_defaults
from opgen.port.progress import progress_bar
from opgen.port.report import as_json, diff, rules_to_write, summary
from opgen.port.rewrite import Options
from opgen.port.rules import Rules, read_rules
from opgen.port.tree import Tree, TreeReport, run, run_file
from opgen.port.walk import Found, real
from opgen.port.wheel import headers_tree, include_dir, installed_torch, left_out
from opgen.report import report, reporter

# Kernels of mp_21 compute in double precision only where they were compiled for it (docs/limits.md).
_WITHOUT_DOUBLE = "mp_21"
_MOST_PROPOSALS = 20


@click.command(name="port", epilog="Example: opgen port csrc --out csrc_musa --ignore csrc/mlu --map rules.tsv")
@click.argument("source", type=PathOption(exists=True), required=False)
@click.option("--out", required=True, type=PathOption(), help="Folder, or the .mu/.muh file for a file.")
@click.option("--ignore", multiple=True, type=PathOption(), help="Folder below SOURCE to leave out; repeatable.")
@click.option(
    "--map", "maps", multiple=True, type=PathOption(dir_okay=False), metavar="FILE",
    help="Rules of your own, .tsv or .json; they win over the tables, later files over earlier ones.",
)  # fmt: skip
@click.option("--no-default-rules", is_flag=True, help="Only the rules of --map (and file names).")
@click.option("--strings", is_flag=True, help="Names in string literals, too.")
@click.option("--comments", is_flag=True, help="Names in comments, too.")
@click.option("--all", "everything", is_flag=True, help="Copy all other files, too, hand-written .mu with them.")
@click.option("--partial", is_flag=True, help="Write files with errors, too; what cannot be ported stays as it is.")
@click.option("--overwrite", is_flag=True, help="Write over files that no earlier port wrote, too.")
@click.option("--clean", is_flag=True, help="Remove earlier ports whose source is gone.")
@click.option("--arch", type=click.Choice(ARCHITECTURES), help="Chip to port for; default: MUSA_ARCH, else mp_31.")
@click.option("--fp64", is_flag=True, help="Kernels are compiled for double precision on every chip.")
@click.option(
    "--torch-headers",
    is_flag=True,
    help="Port the device headers of PyTorch: of the package SOURCE, else of the one installed.",
)
@click.option(
    "--own", multiple=True, type=PathOption(exists=True, file_okay=False), metavar="DIR",
    help="With --torch-headers: headers here stand in for ports of the same path; repeatable.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing; status 1 if anything is to be written or reported.")
@click.option("--diff", "show_diff", is_flag=True, help="Write nothing; show what would change in each source.")
@click.option(
    "--report", "report_file", type=PathOption(dir_okay=False), metavar="FILE", help="Write the report (JSON)."
)
@click.option(
    "--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
)
def command(
    source: Path | None,
    out: Path,
    ignore: tuple[Path, ...],
    maps: tuple[Path, ...],
    no_default_rules: bool,
    strings: bool,
    comments: bool,
    everything: bool,
    partial: bool,
    overwrite: bool,
    clean: bool,
    arch: str | None,
    fp64: bool,
    torch_headers: bool,
    own: tuple[Path, ...],
    check: bool,
    show_diff: bool,
    report_file: Path | None,
    output: str,
) -> None:
    """Port CUDA SOURCE (a file or a folder) to MUSA. Only files whose port changed are written.

    Every .cu, .cuh, C and C++ file below a folder is ported to the same place below the output folder, .cu as .mu and
    .cuh as .muh. Sources are never changed, and neither are files in the output folder that an earlier port did not
    write. What cannot be ported (inline PTX, guards on CUDA's version numbers, names without a known counterpart ...)
    is reported with its place and status 1, and the file it stands in is not written unless --partial is given.
    """
    try:
        mapping = without_defaults(load_mapping()) if no_default_rules else load_mapping()
        options = Options(_rules(maps), strings, comments, _has_double(arch, fp64))
        dry = check or show_diff
        skipped: tuple[tuple[str, str], ...] = ()
        if torch_headers:
            include = include_dir(source or installed_torch())
            tree = headers_tree(include, out, own=own, options=options, write=not dry)
            skipped = left_out(include, own)
        elif source is not None:
            tree = Tree(
                source,
                out,
                ignore,
                mapping,
                options,
                everything=everything,
                partial=partial,
                overwrite=overwrite,
                clean=clean,
                write=not dry,
            )
        else:
            raise OpgenError("there is nothing to port", hint="name a file or a folder, or --torch-headers")
        done = _port(tree, mapping)
        if report_file is not None:
            _write_report(report_file, as_json(done, tree.source, out, mapping, skipped))
    except OpgenError as error:
        reporter().fail(error)
        sys.exit(1)
    if show_diff and output == "text":
        for file in done.files:
            for line in diff(file):
                click.echo(line, nl=False)
    if output == "json":
        click.echo(as_json(done, tree.source, out, mapping, skipped))
    found = Diagnostics()
    for problem in done.problems:
        found.add(problem)
    # Files without errors have been ported.
    report(found, outcome=None)
    if output == "text" and tree.source.is_dir():
        _tell(done, mapping, dry=dry)
        if skipped:
            click.echo(f"{len(skipped)} headers left out on purpose; --report FILE says why", err=True)
    to_do = any(file.written for file in done.files) or bool(done.problems) or (tree.clean and bool(done.stale))
    sys.exit(1 if found.errors or (check and to_do) else 0)


def _port(tree: Tree, mapping: Mapping) -> TreeReport:
    """The folder, or the one file: for that, --out may name the port itself."""
    if tree.source.is_dir():
        with progress_bar() as on_file:
            return run(tree, on_file)
    name = ported_path(Path(tree.source.name), mapping)
    if tree.out.suffix == name.suffix and not tree.out.is_dir():
        target = tree.out
    elif Found(tree.out, tree.out).is_source and not tree.out.is_dir():
        message = f"the port of {tree.source.name} is called *{name.suffix}"
        raise OpgenError(message, Location(str(tree.out)), f"name the file so, or a folder for {name}")
    else:
        target = tree.out / name
    if real(target) == real(tree.source):
        raise OpgenError("sources are never ported in place", Location(str(target)), "name another folder with --out")
    return run_file(tree, target)


def _rules(maps: tuple[Path, ...]) -> Rules:
    rules = Rules()
    for path in maps:
        rules = rules | read_rules(path)
    return rules


def _has_double(arch: str | None, fp64: bool) -> bool:
    return fp64 or _WITHOUT_DOUBLE not in ((arch,) if arch else architectures())


def _write_report(path: Path, text: str) -> None:
    try:
        write_atomically(path, f"{text}\n".encode())
    except OSError as error:
        raise OpgenError(f"cannot write the report: {error.strerror}", Location(str(path))) from error


def _tell(done: TreeReport, mapping: Mapping, *, dry: bool) -> None:
    """What became of the folder and, where names were unknown, the rules that might be missing."""
    proposals = rules_to_write(done, mapping)
    if proposals:
        click.echo("Rules that may be missing (does your toolkit have these names? --map FILE takes them):", err=True)
        for line in proposals[:_MOST_PROPOSALS]:
            click.echo(f"  {line}", err=True)
        if len(proposals) > _MOST_PROPOSALS:
            click.echo(f"  ... and {len(proposals) - _MOST_PROPOSALS} more: --report FILE has all", err=True)
    click.echo(summary(done, dry=dry), err=True)
