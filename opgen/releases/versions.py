"""Generates for a PyTorch release and checks every source against its headers; keeps the table of what was checked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from opgen.diagnostics import OpgenError
from opgen.ninja import OnStep
from opgen.project import Project
from opgen.releases.syntax import check_syntax
from opgen.tree import read_manifest
from opgen.upstream import TorchInstall

__all__ = ["Outcome", "Row", "check_release", "merge", "read_rows", "render"]

_COLUMNS = ("PyTorch", "entries", "registrations", "sources", "failed", "compiler", "date")
_HEAD = """\
# PyTorch releases

One tree serves them all. For each release in this table, the operator list was generated with that release's torchgen,
and every C++ source was checked against that release's headers (`-fsyntax-only`, templates instantiated): the generated
registrations, all kernels, the ported ones after porting, the device, the bindings and the toolkit's stand-in.
*Sources* counts translation units, *failed* those that did not pass; nothing is sampled. Nothing is linked or run by
this: full builds and tests are [another matter](releases.md#build-and-test).

Written by `make versions`, which replaces the rows of the releases it has checked.

"""


@dataclass(frozen=True)
class Row:
    """One line of the table, all as text."""

    torch: str
    entries: str
    registrations: str
    sources: str
    failed: str
    compiler: str
    date: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.torch, self.entries, self.registrations, self.sources, self.failed, self.compiler, self.date)


@dataclass(frozen=True)
class Outcome:
    """What checking one release gave."""

    row: Row
    ok: bool
    checked: int
    """Sources looked at by this run; the others have not changed since they passed."""
    seconds: float
    text: str
    """What generation and the compiler had to say; empty where all is well."""


def check_release(project: Project, install: TorchInstall, jobs: int, date: str, on_step: OnStep) -> Outcome:
    """Generate for `install` and check all sources against it. Raises OpgenError where that cannot be done."""
    code, said = _generate(project, install)
    manifest = read_manifest(project.generated(install.release))
    if code != 0 or manifest is None:
        row = Row(install.release, "-", "-", "0", "generation", "-", date)
        return Outcome(row, ok=False, checked=0, seconds=0.0, text=said)
    syntax = check_syntax(project, install, jobs, on_step)
    row = Row(
        torch=install.release,
        entries=str(manifest.summary.get("entries", 0)),
        registrations=str(manifest.summary.get("registrations", 0)),
        sources=str(syntax.files),
        failed=str(len(syntax.failed)),
        compiler=syntax.compiler,
        date=date,
    )
    return Outcome(row, not syntax.failed and not said, syntax.checked, syntax.seconds, said + syntax.text)


def _generate(project: Project, install: TorchInstall) -> tuple[int, str]:
    """Exit status and diagnostics of `opgen gen`, in a process of its own: a process knows one torchgen only."""
    package = str(Path(__file__).parents[2])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "opgen.cli",
            "gen",
            "--torch",
            str(install.torch.parent),
            "--diagnostics=json",
        ],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))},
    )
    try:
        found = json.loads(done.stdout)["diagnostics"]
    except (ValueError, KeyError, TypeError):
        raise OpgenError(f"cannot generate for torch {install.release}: {done.stderr or done.stdout}") from None
    return done.returncode, "".join(f"{_diagnostic(item)}\n" for item in found)


def _diagnostic(item: dict[str, object]) -> str:
    place = ":".join(str(item[key]) for key in ("path", "line", "column") if item.get(key))
    return ": ".join(filter(None, [place, str(item["severity"]), str(item["message"])]))


def read_rows(path: Path) -> tuple[Row, ...]:
    """The rows of a table that `render` has written; none where there is no such file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line))
    return tuple(Row(*row) for row in cells if len(row) == len(_COLUMNS))


def merge(old: Iterable[Row], new: Iterable[Row]) -> tuple[Row, ...]:
    """The rows by release, oldest first; a new one replaces the old one of its release."""
    rows = {row.torch: row for row in (*old, *new)}
    return tuple(sorted(rows.values(), key=lambda row: Version(row.torch)))


def render(rows: Iterable[Row]) -> str:
    """The whole document."""
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(row.cells)} |" for row in rows]
    return _HEAD + "\n".join(lines) + "\n"
