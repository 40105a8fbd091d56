"""Options that `opgen truth` and `opgen test` share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opgen.diagnostics import OpgenError, did_you_mean
from opgen.options import PathOption

if TYPE_CHECKING:
    from opgen.truth.campaign import Settings

__all__ = ["campaign_options", "settings_of"]

F = TypeVar("F", bound=Callable[..., Any])

# Every dtype that a case may have as its main one (opgen.testing.tensors.DTYPES: a test compares the two, which keeps
# torch out of the command line).
DTYPES = (
    *("float32", "float64", "float16", "bfloat16"),
    *("int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"),
)


class _Seconds(click.FloatRange):
    """A time that passes: no comparison stops nan, and what is waited for without end is never told."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


def campaign_options(command: F) -> F:
    """How many cases, which, and how they are run."""
    for option in (
        click.option(
            "--build/--no-build", default=True, show_default=True, help="Compile what has changed since the last build."
        ),
        click.option(
            "--load",
            multiple=True,
            type=PathOption(exists=True, dir_okay=False),
            help="A library or a Python file that registers operators; loaded before they are run. Repeatable.",
        ),
        click.option(
            "--timeout",
            type=_Seconds(min=0.1),
            default=60,
            show_default=True,
            metavar="SEC",
            help="Seconds that one call may take.",
        ),
        click.option("--jobs", "-j", type=click.IntRange(1), help="Processes at once; default: all cores."),
        click.option("--dtype", "dtypes", multiple=True, metavar="DTYPE", help="Only this main dtype. Repeatable."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Other cases."),
        click.option(
            "--cases",
            type=click.IntRange(1, 100_000),
            default=20,
            show_default=True,
            help="Cases for each overload and main dtype.",
        ),
    ):
        command = option(command)
    return command


def settings_of(
    cases: int, seed: int, dtypes: Sequence[str], jobs: int | None, timeout: float, load: Sequence[str | Path]
) -> Settings:
    """The options as the campaign takes them. Raises OpgenError for a dtype that does not exist."""
    from opgen.truth.campaign import Settings
    from opgen.truth.session import default_jobs

    names = tuple(dict.fromkeys(name.removeprefix("torch.") for name in dtypes))
    for name in names:
        if name not in DTYPES:
            hint = did_you_mean(name, DTYPES) or f"there are {', '.join(DTYPES)}"
            raise OpgenError(f"'{name}' is no dtype that operators are run with", hint=hint)
    return Settings(
        cases=cases,
        seed=seed,
        dtypes=names or None,
        timeout=timeout,
        jobs=jobs or default_jobs(),
        load=tuple(str(Path(path).resolve()) for path in load),
    )
