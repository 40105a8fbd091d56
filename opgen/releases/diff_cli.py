"""`opgen diff`: what another PyTorch changes for the operator list."""

from __future__ import annotations

from pathlib import Path

import click

from opgen.diagnostics import Diagnostics
from opgen.options import PathOption, cache_option, yaml_option
from opgen.report import diagnostics_option, report

__all__ = ["command"]


@click.command(epilog="Example: opgen diff --from 2.13.0 --to 2.15.0 --format markdown > moving.md")
@click.option(
    "--from",
    "before",
    metavar="DIR_OR_VERSION",
    default="installed",
    show_default=True,
    help="The PyTorch that the operator list was made for.",
)
@click.option(
    "--to",
    "after",
    metavar="DIR_OR_VERSION",
    default="installed",
    show_default=True,
    help="The PyTorch to move to.",
)
@yaml_option
@click.option("--kernels", type=PathOption(), help="Folder with the kernel sources; default: the project's own.")
@cache_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "markdown"]),
    default="table",
    show_default=True,
    help="How to print.",
)
@diagnostics_option()
@click.option("--exit-code", is_flag=True, help="Exit with status 1 when anything has to be edited.")
def command(
    before: str,
    after: str,
    yaml_path: Path | None,
    kernels: Path | None,
    cache: Path | None,
    output: str,
    exit_code: bool,
) -> None:
    """Show what another PyTorch changes for the entries listed, each with the edit to make, worst first.

    A PyTorch is named by its version (2.14.1, or 2.14 for the newest 2.14), by a folder (site-packages, a virtual
    environment, an unpacked wheel) or by a wheel; `installed` is the one of this environment. A version that is neither
    installed nor cached is fetched with pip: torchgen and the headers are kept, the wheel is deleted.

    `to edit` is what keeps the tree from generating, compiling or running right; `to look at` goes on as it is;
    `coverage denominator` lists overloads that have a CUDA kernel on one side only. Releases at hand that lie between
    the two tell in which one something changed.

    The exit status is 0, with --exit-code 1 when something has to be edited. Failures are status 1, too, with an
    `error:` on standard error and nothing on standard output.
    """
    from opgen.backend import MUSA
    from opgen.coverage.matrix import vendor_only
    from opgen.gen import Sources
    from opgen.kernels import scan_kernels
    from opgen.project import find_project
    from opgen.releases.catalogue import load_catalogue
    from opgen.releases.changes import Urgency
    from opgen.releases.diff import compare
    from opgen.releases.locate import between, find_release, release_cache
    from opgen.releases.progress import progress_shown
    from opgen.releases.show import as_json, as_markdown, as_text
    from opgen.releases.timeline import Timeline
    from opgen.spec import load_specs

    if before == after:
        raise click.UsageError(f"both sides are '{before}': name the other PyTorch with --from or --to")
    folder = release_cache(cache)
    with progress_shown() as progress:
        installs = [find_release(text, folder, progress) for text in (before, after)]
        sources = Sources.of(find_project(), yaml_path, kernels, installs[0])
        diagnostics = Diagnostics()
        specs = load_specs(sources.yaml, diagnostics, sources.backend)
        report(diagnostics, "nothing was compared")
        if diagnostics.errors:
            raise SystemExit(1)
        installs += between(installs[0], installs[1], folder)
        old, new, *known = (load_catalogue(install, lambda what: progress(what, 0, 0)) for install in installs)
    index = scan_kernels(sources.kernels.parent, sources.kernels)
    excluded = {op: item.library for op, item in vendor_only().items()}
    comparison = compare(specs, index, Timeline.of(old, new, known), MUSA, excluded)
    printed = {"table": as_text, "json": as_json, "markdown": as_markdown}[output](comparison)
    click.echo(printed, nl=not printed.endswith("\n"))
    if exit_code and comparison.counts()[Urgency.EDIT]:
        raise SystemExit(1)
