"""How diagnostics leave the command: text for people, JSON for editors, workflow commands for GitHub.

Every verb has `--diagnostics text|json|github`; where diagnostics are all that a verb prints, it is called `--format`,
too, and the machine formats go to standard output. Verbs with an output of their own keep that on standard output, and
their diagnostics go to standard error in each format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import click

from opgen.diagnostics import Diagnostic, Diagnostics, Location, OpgenError, Severity, as_record

__all__ = ["Format", "Reporter", "as_github", "as_json", "diagnostics_option", "report", "reporter"]

_META = "opgen.reporter"
_JSON_VERSION = 1


class Format(str, Enum):
    """The value of `--diagnostics`."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def as_json(items: Iterable[Diagnostic]) -> str:
    """One document, which is there and complete for no diagnostics as well."""
    records = [as_record(item) for item in items]
    counts = {f"{s.value}s": sum(record["severity"] == s.value for record in records) for s in Severity}
    # ASCII with escapes: whatever a file's bytes decoded to can be printed on every terminal.
    return json.dumps({"version": _JSON_VERSION, **counts, "diagnostics": records}, indent=1)


def as_github(item: Diagnostic) -> str:
    """A workflow command that annotates the line in a pull request.

    The log shows a command's message only, so the place is repeated there.
    """
    where = item.location
    properties = {
        "file": where.path,
        "line": where.line,
        "endLine": where.end_line,
        "col": where.column,
        "endColumn": where.end_column,
    }
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    return f"::{item.severity.value}{' ' * bool(given)}{given}::{_data(str(item))}"


def _data(text: str) -> str:
    """Escaped as the runner unescapes it: https://github.com/actions/toolkit, packages/core/src/command.ts."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _styled(item: Diagnostic) -> str:
    """Compiler-like text; click drops the colours where the output is no terminal."""
    word = f"{item.severity.value}: "
    head, _, rest = str(item).partition(word)
    colour = "red" if item.severity is Severity.ERROR else "magenta"
    return f"{click.style(head, bold=True)}{click.style(word, fg=colour, bold=True)}{rest}"


class Reporter:
    """Where one run of a command says what is wrong. `close` ends it, once."""

    def __init__(self, output: Format = Format.TEXT, *, machine_to_stdout: bool = False) -> None:
        self.output = output
        self._to_stderr = output is Format.TEXT or not machine_to_stdout
        self._pending: list[Diagnostic] = []
        self._closed = False

    @property
    def prose_to_stderr(self) -> bool:
        """Whether what a command says besides must make room on standard output."""
        return not self._to_stderr

    def show(self, diagnostics: Diagnostics, outcome: str | None = None) -> None:
        """All diagnostics and, in text, their number; `outcome` says what follows from errors."""
        self._write(list(diagnostics))
        errors, warnings = len(diagnostics.errors), len(diagnostics.warnings)
        if self.output is Format.TEXT and errors:
            counts = [_count(errors, "error"), *([_count(warnings, "warning")] if warnings else [])]
            click.echo("; ".join([", ".join(counts), *([outcome] if outcome else [])]), err=True)

    def fail(self, error: OpgenError) -> None:
        """What ended the command. In text another program's output stands above, as it is; else it is the hint."""
        hint = error.hint
        if error.output and self.output is Format.TEXT:
            click.echo(error.output, err=True, nl=not error.output.endswith("\n"))
        elif error.output:
            hint = "\n".join(filter(None, [error.hint, error.output.rstrip("\n")]))
        self._write([Diagnostic(Severity.ERROR, error.location or Location(""), error.message, hint)])

    def close(self) -> None:
        """JSON is one document for each run, so it is written when nothing more can come."""
        if not self._closed and self.output is Format.JSON:
            click.echo(as_json(self._pending), err=self._to_stderr)
        self._closed = True

    def _write(self, items: list[Diagnostic]) -> None:
        if self.output is Format.JSON:
            self._pending += items
            return
        for item in items:
            click.echo(_styled(item) if self.output is Format.TEXT else as_github(item), err=self._to_stderr)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def reporter() -> Reporter:
    """The running command's reporter; outside of a command, one that prints text."""
    context = click.get_current_context(silent=True)
    found = context.meta.get(_META) if context is not None else None
    return found if isinstance(found, Reporter) else Reporter()


def report(diagnostics: Diagnostics, outcome: str | None = "nothing was written") -> None:
    """Show a command's diagnostics in the format that its user asked for."""
    reporter().show(diagnostics, outcome)


def diagnostics_option(*, to_stdout: bool = False) -> Callable[[Any], Any]:
    """`--diagnostics`; with `to_stdout` it is called `--format`, too, and the machine formats go to standard output."""

    def begin(context: click.Context, parameter: click.Parameter, value: str) -> None:
        if os.environ.get("NO_COLOR"):
            context.find_root().color = context.color = False
        context.meta[_META] = Reporter(Format(value), machine_to_stdout=to_stdout)

    return click.option(
        "--diagnostics",
        *(("--format",) if to_stdout else ()),
        type=click.Choice([f.value for f in Format]),
        default=Format.TEXT.value,
        show_default=True,
        envvar="OPGEN_DIAGNOSTICS",
        show_envvar=True,
        expose_value=False,
        callback=begin,
        help="How to print errors and warnings.",
    )
