"""The verb `opgen trace`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen.diagnostics import Diagnostics, Location, OpgenError, shown
from opgen.options import PathOption, format_option, yaml_option
from opgen.progress import on_terminal
from opgen.report import reporter

if TYPE_CHECKING:
    from opgen.coverage.survey import Survey
    from opgen.trace.calls import Trace
    from opgen.trace.report import Called

__all__ = ["command"]

_BLOCKING = "MUSA_LAUNCH_BLOCKING"


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: opgen trace --top 20 examples/train_digits.py --epochs 1",
)
@click.argument("script", metavar="SCRIPT [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED, required=True)
@yaml_option
@format_option
@click.option("-m", "--module", is_flag=True, help="SCRIPT is the name of a module, as for python -m.")
@click.option("--top", type=click.IntRange(min=0), help="Of the operators that nothing is wrong with, show so many.")
@click.option("--output", "path", type=PathOption(dir_okay=False), metavar="FILE", help="Write the report there.")
def command(
    script: tuple[str, ...], yaml_path: Path | None, output: str, module: bool, top: int | None, path: Path | None
) -> None:
    """Run a Python script and list the operators it called on the device: missing ones and those on the CPU first.

    For each overload: calls, self time (less the time in operators that it called), the kernel family that ran, and
    the verdict for the dtypes it was called with. Options of opgen come before SCRIPT, everything behind it is the
    script's. Training counts whole: backward passes run on threads of their own. Operators on CPU tensors are not
    counted, nor are processes that the script starts.

    Launches block while a script is traced, so that an operator's time is the time its kernels ran;
    MUSA_LAUNCH_BLOCKING=0 in the environment keeps them asynchronous. With --format json and no --output, the script
    prints to standard error.

    The exit status is the script's, 128 + n where signal n ended it; the report comes after an exception or Ctrl-C,
    too, but not after os._exit or a signal that the script does not handle.
    """
    from opgen.coverage.survey import survey

    if not module and not Path(script[0]).exists():
        raise OpgenError("no such script", Location(script[0]), "name a Python file; -m runs a module")
    if path is not None:
        _check_writable(path)
    # Before the script runs: whatever is wrong here should not be found out after an hour of training.
    coverage = survey(yaml_path, None, Diagnostics())
    status, trace = _run(script, module, coverage.backend.name, quiet=output == "json" and path is None)
    _report(script, status, trace, coverage, output, top, path)
    raise SystemExit(status)


def _check_writable(path: Path) -> None:
    folder = path.resolve().parent
    if not folder.is_dir():
        raise OpgenError("cannot write: no such folder", Location(str(folder)), "name a file with --output FILE")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise OpgenError("cannot write: permission denied", Location(str(path)), "name a file with --output FILE")


def _run(script: tuple[str, ...], module: bool, device: str, *, quiet: bool) -> tuple[int, Trace]:
    """The script's exit status, and what it called. Raises OpgenError where it left nothing behind."""
    from opgen.trace.calls import Trace
    from opgen.trace.runner import NO_DEVICE, NO_MODULE

    with tempfile.TemporaryDirectory(prefix="opgen-trace-") as folder:
        report = Path(folder) / "calls.json"
        runner = [sys.executable, "-m", "opgen.trace.runner", str(report), device, "module" if module else "script"]
        if on_terminal(sys.stdout):
            sys.stdout.flush()
        status = _wait(
            subprocess.Popen(
                [*runner, *script],
                env={**os.environ, _BLOCKING: os.environ.get(_BLOCKING, "1")},
                stdout=sys.stderr.fileno() if quiet else None,
            )
        )
        text = report.read_text(encoding="utf-8") if report.exists() else ""
    if status == NO_DEVICE and text:
        raise OpgenError(f"device '{device}' is not usable: {text}", hint="`opgen build` builds it")
    if status == NO_MODULE and text:
        raise OpgenError(text, hint="-m takes a module's name as `python -m` does, from the working folder on")
    try:
        return 128 - status if status < 0 else status, Trace.from_json(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        how = f"by signal {-status} ({signal.Signals(-status).name})" if status < 0 else f"with status {status}"
        error = OpgenError(
            f"{script[0]} ended {how} before its operators could be listed",
            hint="os._exit and signals leave no time for it; without them, run the script alone to see what is wrong",
        )
        reporter().fail(error)
        # the script's; a report that is not there is no success, whatever the script says
        raise SystemExit((128 - status if status < 0 else status) or 1) from None


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The exit status. Ctrl-C reaches the script, too, and it is the script that decides what to do about it."""
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _report(
    script: tuple[str, ...],
    status: int,
    trace: Trace,
    coverage: Survey,
    output: str,
    top: int | None,
    path: Path | None,
) -> None:
    from opgen.coverage.files import write_file
    from opgen.trace.report import as_json, called

    found = called(trace, coverage.registered, coverage.upstream.functions, coverage.records)
    if output == "json":
        text = json.dumps(as_json(trace, found, script, status), indent=2) + "\n"
    else:
        text = _text(trace, found, script[0], top)
    if path is not None:
        write_file(path, text, "name a file with --output FILE")
        click.echo(f"wrote {path}", err=True)
    elif output == "json":
        click.echo(text, nl=False)
    else:
        click.echo(f"\n{text}", nl=False)


def _text(trace: Trace, found: tuple[Called, ...], script: str, top: int | None) -> str:
    from opgen.trace.report import head, sections

    parts = [head(trace, found, shown(script)), *map(str, sections(found, top))]
    return "\n\n".join(parts) + "\n"
