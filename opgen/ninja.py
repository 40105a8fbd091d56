"""Runs Ninja on a configured build folder: a call for each finished step, and what the compilers said."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NinjaRun", "OnStep", "run_ninja"]

OnStep = Callable[[int, int, str], None]
"""Called with the steps done, the steps there are, and what was just done."""

# Ninja prints this before each step; the bell cannot occur in a compiler's own output.
_STATUS = "\a%f/%t "
_STEP = re.compile(r"^\a(\d+)/(\d+) (.*)$")
# Newer Ninjas say the exit code between the two.
_FAILED = re.compile(r"^FAILED: (?:\[[^\]]*\] )?(.*?)\s*$")


@dataclass(frozen=True)
class NinjaRun:
    """How one run went."""

    code: int
    failed: tuple[str, ...]
    """Outputs that could not be made, relative to the build folder."""
    text: str
    """What the compilers said, without Ninja's own lines and without command lines."""
    error: str
    """What Ninja itself complained of."""


def run_ninja(
    ninja: str, folder: Path, jobs: int, on_step: OnStep, *, targets: Iterable[str] = (), keep_going: bool = False
) -> NinjaRun:
    """Make `targets`, all where none is named; with `keep_going`, whatever can be made although others fail."""
    # The pipe keeps Ninja from redrawing one line, so that each step comes as a line of its own.
    process = subprocess.Popen(
        [ninja, "-C", str(folder), "-j", str(jobs), *(["-k", "0"] if keep_going else []), *targets],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "NINJA_STATUS": _STATUS},
    )
    assert process.stdout is not None
    said: list[str] = []
    failed: list[str] = []
    command_follows = False  # after "FAILED: <file>" Ninja prints the command, pages of flags that explain nothing
    try:
        for line in process.stdout:
            step = _STEP.match(line.rstrip("\n"))
            failure = _FAILED.match(line)
            if step:
                on_step(int(step[1]), int(step[2]), step[3])
            elif failure:
                failed.extend(failure[1].split())
                said.append(line)
            elif not command_follows:
                said.append(line)
            command_follows = failure is not None
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return NinjaRun(
        code=code,
        failed=tuple(failed),
        text="".join(line for line in said if not line.startswith("ninja: ")),
        error="".join(line for line in said if line.startswith("ninja: error")),
    )
