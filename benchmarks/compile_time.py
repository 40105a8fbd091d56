"""What the compiler spends on the generated sources, and on the same wrappers registered the plain way."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_WRAPPED = re.compile(r"\bwrapped\((\w+)\)")


@dataclass(frozen=True)
class Command:
    """How one source is compiled."""

    arguments: tuple[str, ...]
    folder: Path
    source: Path

    def of(self, source: Path, output: Path) -> list[str]:
        """The same for another source, without the launcher (a compiler cache would answer instead)."""
        arguments = [str(source) if argument == str(self.source) else argument for argument in self.arguments]
        arguments[arguments.index("-o") + 1] = str(output)
        return arguments


def commands(build: Path) -> list[Command]:
    """The compiler's commands for the generated sources, from the build's compile_commands.json."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    found = []
    for entry in entries:
        source = Path(entry["file"])
        if re.match(r"(Register|Signatures)\w*\.cpp$", source.name):
            arguments = shlex.split(entry["command"])
            start = 1 if Path(arguments[0]).name in ("ccache", "sccache") else 0
            found.append(Command(tuple(arguments[start:]), Path(entry["directory"]), source))
    return sorted(found, key=lambda command: command.source)


def cpu_seconds(command: Command, source: Path) -> float:
    """User and system time of compiling `source` as `command` does. Exits where that fails."""
    with tempfile.TemporaryDirectory(prefix="opgen-bench-") as folder:
        arguments = command.of(source, Path(folder) / "out.o")
        process = subprocess.Popen(arguments, cwd=command.folder)
        # Not wait(): only this tells what the compiler and its children took, whatever else the machine does.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{source} does not compile")
    return usage.ru_utime + usage.ru_stime


def registrations(sources: Sequence[Path]) -> int:
    """Number of registrations in these sources."""
    return sum(source.read_text(encoding="utf-8").count("m.impl(") for source in sources)


def plain(text: str) -> str:
    """A registration source with every wrapper registered by TORCH_FN."""
    return _WRAPPED.sub(r"TORCH_FN(\1)", text)
