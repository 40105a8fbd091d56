"""Running the compilers: only what changed, several at once, and errors that a reader can use."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from opgen.ninja import run_ninja


class BuildFailed(RuntimeError):
    """The compilers' own messages, and which sources they are about."""


@dataclass(frozen=True)
class Step:
    """One command: what it makes from what, and which other files it reads."""

    output: Path
    inputs: tuple[Path, ...]
    command: tuple[str, ...]
    reads: tuple[Path, ...] = ()


def jobs() -> int:
    """Compilers at once: MAX_JOBS, else one for each core."""
    given = os.environ.get("MAX_JOBS", "")
    return max(1, int(given)) if given.isdigit() else os.cpu_count() or 1


def make(steps: Sequence[Step], folder: Path, *, verbose: bool = False) -> None:
    """Runs the steps whose output is older than what it is made from, or was made by another command.

    The last step may use the outputs of the others. Ninja runs them where it is installed. Raises BuildFailed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        step.output.parent.mkdir(parents=True, exist_ok=True)
        if verbose:
            print(shlex.join(step.command), file=sys.stderr)
    ninja = _ninja()
    # A line break is the one character that Ninja's files have no way to write.
    if ninja is not None and not any("\n" in word for step in steps for word in (*step.command, *map(str, step.reads))):
        _with_ninja(ninja, steps, folder)
    else:
        _without_ninja(steps)


def _ninja() -> str | None:
    """The one of this Python environment, which need not be on PATH, else the one there. USE_NINJA=0 does without."""
    if os.environ.get("USE_NINJA", "1").lower() in ("0", "off", "no", "false"):
        return None
    beside = Path(sys.executable).parent / "ninja"
    return str(beside) if beside.exists() else shutil.which("ninja")


def _with_ninja(ninja: str, steps: Sequence[Step], folder: Path) -> None:
    lines = ["ninja_required_version = 1.5", "rule run", "  command = $cmd", "  description = $out"]
    for step in steps:
        reads = f" | {_paths(step.reads)}" if step.reads else ""
        lines += [
            f"build {_paths([step.output])}: run {_paths(step.inputs)}{reads}",
            f"  cmd = {shlex.join(step.command).replace('$', '$$')}",
        ]
    text = "\n".join(lines) + "\n"
    path = folder / "build.ninja"
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    done = run_ninja(ninja, folder, jobs(), lambda finished, total, what: None, keep_going=True)
    if done.code != 0:
        raise _failed([str(Path(output).name) for output in done.failed], f"{done.text}{done.error}")
    if done.text.strip():
        print(done.text, file=sys.stderr, end="")


def _paths(paths: Iterable[Path]) -> str:
    return " ".join(str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:") for path in paths)


def _without_ninja(steps: Sequence[Step]) -> None:
    *first, last = steps
    with ThreadPoolExecutor(jobs()) as pool:
        outcomes = list(pool.map(_run, first))
    broken = [(step, text) for step, (code, text) in zip(first, outcomes, strict=True) if code != 0]
    if not broken:
        code, text = _run(last)
        broken = [(last, text)] if code != 0 else []
    if broken:
        raise _failed([step.output.name for step, _ in broken], "".join(text for _, text in broken))


def _run(step: Step) -> tuple[int, str]:
    record = step.output.with_name(f"{step.output.name}.command")
    command = shlex.join(step.command)
    if step.output.is_file() and record.is_file() and record.read_text() == command:
        made = step.output.stat().st_mtime_ns
        if all(path.is_file() and path.stat().st_mtime_ns <= made for path in (*step.inputs, *step.reads)):
            return 0, ""
    record.unlink(missing_ok=True)  # an interrupted compiler may leave an output that looks finished
    try:
        done = subprocess.run(
            step.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        return 127, f"{step.command[0]}: {error.strerror}\n"
    if done.returncode == 0:
        record.write_text(command)
        if done.stdout.strip():
            print(done.stdout, file=sys.stderr, end="")
    return done.returncode, done.stdout


def _failed(outputs: Sequence[str], text: str) -> BuildFailed:
    what = ", ".join(sorted(outputs)) or "the extension"
    return BuildFailed(f"{text.rstrip()}\n{what} could not be made; the messages above say why")
