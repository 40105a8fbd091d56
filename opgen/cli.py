"""The `opgen` command: one thin group; each subcommand's module is imported only when it is called."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from opgen.diagnostics import Diagnostics, Location, OpgenError
from opgen.options import PathOption, torch_option, yaml_option
from opgen.report import Format, diagnostics_option, report, reporter

if TYPE_CHECKING:
    from opgen.upstream import TorchInstall

__all__ = ["main", "opgen", "report"]

# Subcommand -> (module, attribute, one line for `opgen --help`). The line stands here so that the list of commands
# can be shown without importing them all.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    "gen": ("opgen.cli", "gen", "Generate registrations and headers from the operator list."),
    "check": ("opgen.cli", "check", "Validate the operator list without writing anything."),
    "list": ("opgen.listing", "command", "Show every entry's kind, kernel, family and source."),
    "explain": ("opgen.explain.command", "command", "Explain one operator: kinds possible, what is chosen, why."),
    "new": ("opgen.new.command", "command", "Add an operator: entries, kernel skeleton, test."),
    "coverage": ("opgen.coverage.cli", "command", "Show the operator coverage matrix."),
    "test": ("opgen.truth.command_test", "command", "Run one operator on the device: a verdict for each dtype."),
    "truth": ("opgen.truth.command_truth", "command", "Run every operator on the device and keep the verdicts."),
    "trace": ("opgen.trace.command", "command", "Run a script and list the operators it called."),
    "build": ("opgen.build", "command", "Generate, configure and compile."),
    "diff": ("opgen.releases.diff_cli", "command", "Show what another PyTorch changes for the operator list."),
    "versions": ("opgen.releases.versions_cli", "command", "Generate and syntax-check for several PyTorch releases."),
    "port": ("opgen.port.cli", "command", "Turn CUDA-dialect sources into MUSA sources."),
    "completion": ("opgen.completion", "command", "Print a shell's completion script."),
}


class _LazyGroup(click.Group):
    """Knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        if all("--diagnostics" not in parameter.opts for parameter in command.params):
            diagnostics_option()(command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what makes it fail is reported in the format that was asked for.

        A command that is interrupted, or whose arguments are wrong, has no findings: then there is no JSON either.
        """
        try:
            result = super().invoke(ctx)
        except OpgenError as error:
            reporter().fail(error)
            reporter().close()
            raise SystemExit(1) from None
        except OSError as error:
            if isinstance(error, BrokenPipeError) or reporter().output is Format.TEXT:
                raise
            # What nobody nearer to the file has said better.
            place = Location(str(error.filename)) if error.filename else None
            reporter().fail(OpgenError(str(error.strerror or error), place))
            reporter().close()
            raise SystemExit(1) from None
        except (SystemExit, click.exceptions.Exit):
            reporter().close()
            raise
        reporter().close()
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from opgen.diagnostics import did_you_mean

            hint = did_you_mean(args[0], _COMMANDS) if args else None
            raise click.UsageError(f"{error.message} {hint}" if hint else error.message, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in _COMMANDS.items()])


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: opgen gen && opgen list --format json",
)
@click.version_option(package_name="opgen-musa", message="%(version)s")
def opgen() -> None:
    """Operators for PyTorch's MUSA backend: registrations, builds and coverage from one YAML file."""


_kernels_option = click.option(
    "--kernels", type=PathOption(), help="Folder with the kernel sources; default: the project's own."
)


@click.command(epilog="Example: opgen gen --yaml yaml/musa_functions.yaml --out generated/torch2.13.0")
@yaml_option
@torch_option
@diagnostics_option(to_stdout=True)
@click.option("--out", type=PathOption(), help="Output folder; default: generated/torch<VERSION>.")
@_kernels_option
@click.option("--force", is_flag=True, help="Generate even though nothing has changed.")
@click.option("--draft", is_flag=True, help="Only warn about missing kernels: write the headers to start one with.")
def gen(
    yaml_path: Path | None,
    torch: TorchInstall | None,
    out: Path | None,
    kernels: Path | None,
    force: bool,
    draft: bool,
) -> None:
    """Generate registrations and headers from the operator list.

    Files are written only where their text changes, and none at all when there is an error.
    """
    from opgen.gen import Sources, generate
    from opgen.project import find_project

    project = find_project()
    sources = Sources.of(project, yaml_path, kernels, torch)
    diagnostics = Diagnostics()
    folder = out or project.generated(sources.install.release)
    summary = generate(sources, folder, diagnostics, force=force, draft=draft)
    report(diagnostics)
    if summary is None:
        raise SystemExit(1)
    click.echo(f"torch {sources.install.version}: {summary}", err=reporter().prose_to_stderr)


@click.command(epilog="Example: opgen check --yaml yaml/musa_functions.yaml")
@yaml_option
@torch_option
@diagnostics_option(to_stdout=True)
@_kernels_option
def check(yaml_path: Path | None, torch: TorchInstall | None, kernels: Path | None) -> None:
    """Validate the operator list without writing anything; exit status 1 when there are errors."""
    from opgen.gen import Sources, analyse
    from opgen.project import find_project
    from opgen.tables import counted

    sources = Sources.of(find_project(), yaml_path, kernels, torch)
    diagnostics = Diagnostics()
    analysis = analyse(sources, diagnostics)
    report(diagnostics)
    if diagnostics.errors:
        raise SystemExit(1)
    counts = f"{counted(analysis.entries, 'entry')}, {counted(len(analysis.registrations), 'registration')}"
    click.echo(f"torch {sources.install.version}: {counts}, no errors", err=reporter().prose_to_stderr)


def _terminated(signum: int, frame: FrameType | None) -> None:
    """Unwind, so that a write in progress is undone."""
    raise SystemExit(128 + signum)


def _drop_output() -> None:
    """What is left in standard output's buffer goes nowhere: the interpreter would flush it again at its end, fail
    again, and exit with 120."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no descriptor, or none behind the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _closed_output_refuses() -> None:
    """Where standard output is closed (`>&-`), Python has no stream, and what is printed goes nowhere without a word. A
    stream takes its place that no write succeeds on; the descriptor is taken, too, so that no file gets it."""
    if sys.stdout is None:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # to the end of the process


def main(args: list[str] | None = None) -> None:
    """Entry point: every failure is a message and an exit status, never a traceback."""
    signal.signal(signal.SIGTERM, _terminated)
    _closed_output_refuses()
    try:
        result: Any = opgen.main(args=args, prog_name="opgen", standalone_mode=False)
        sys.stdout.flush()  # at the interpreter's end nobody could tell what went wrong
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except OpgenError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever reads has seen enough (`opgen list | head`).
        _drop_output()
        sys.exit(1)
    except OSError as error:
        # What nobody nearer to the file has said better: a full disk behind standard output, say.
        why = "standard output is closed" if error.errno == errno.EBADF else error.strerror or error
        click.echo(f"{error.filename or 'opgen'}: error: {why}", err=True)
        _drop_output()
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)


if __name__ == "__main__":
    main()
