"""Types of command-line options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opgen.upstream import TorchInstall


class PathOption(click.Path):
    """A path, as `pathlib.Path`. The empty string is refused: it would silently mean the working folder, which an
    unset shell variable (`--out "$OUT"`) should not fill with generated files."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(path_type=Path, **kwargs)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the empty string names no file or folder; write '.' for the working folder", param, ctx)
        return super().convert(value, param, ctx)


yaml_option = click.option("--yaml", "yaml_path", type=PathOption(), help="Operator list; default: the project's own.")
format_option = click.option(
    "--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)
cache_option = click.option(
    "--cache",
    type=PathOption(file_okay=False),
    help="Where fetched PyTorch releases are kept; default: torch/ in the user's cache folder.",
)


def _release(context: click.Context, parameter: click.Parameter, value: str | None) -> TorchInstall | None:
    """Fetches a release that is not there yet: everything after this works on files."""
    if value is None or context.resilient_parsing:
        return None
    from opgen.releases.locate import find_release, release_cache
    from opgen.releases.progress import progress_shown

    with progress_shown() as progress:
        return find_release(value, release_cache(), progress)


torch_option = click.option(
    "--torch",
    metavar="DIR_OR_VERSION",
    callback=_release,
    help="PyTorch to work for: a version, a folder or a wheel (see opgen diff); default: the installed one.",
)
