"""Types of command-line options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


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
