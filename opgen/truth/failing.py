"""Why an overload could not be run at all: no verdict follows from that, so no record is made of it. Plain data."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Failure", "loading", "of_load"]

LOAD = "load"
"""What `--load` names could not be loaded: nothing that needs it can be run."""
PROCESS = "process"
"""The process ended, or did not answer, before it came to a case."""
BENCH = "bench"
"""PyTorch has no such overload in this process, or the test bench has a fault."""


@dataclass(frozen=True)
class Failure:
    """What went wrong before there was a case."""

    kind: str
    message: str
    path: str = ""
    """The file that could not be loaded."""
    line: int = 0
    """Of the statement in it; 0 where it is a library, or has no such line."""

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Failure:
        """From what `dataclasses.asdict` gives, through JSON."""
        return Failure(**plain)


def of_load(path: str, error: BaseException) -> Failure:
    """What a file raised when it was loaded: the place is the file's own statement, even where it failed further in."""
    said = str(error).strip()
    name = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename is not None and error.msg:
        place, said = (error.filename, error.lineno or 0), error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        mine = [(frame.filename, frame.lineno or 0) for frame in frames if _same(frame.filename, path)]
        inner = (frames[-1].filename, frames[-1].lineno or 0) if frames else (path, 0)
        place = mine[-1] if mine else (path, 0)
        if mine and inner != place and not inner[0].startswith("<"):
            said += f" (raised at {inner[0]}:{inner[1]})"
    if isinstance(error, SystemExit):
        said = f"it ends its process with status {error.code}"
    return Failure(LOAD, f"cannot load it: {name}: {said}" if said else f"cannot load it: {name}", *place)


def loading(path: str, how: str, said: str) -> Failure:
    """What a process says that ended while it loaded a file."""
    return Failure(LOAD, f"cannot load it: {how}" + (f": {said}" if said else ""), path)


def _same(one: str, other: str) -> bool:
    return one == other or Path(one).resolve() == Path(other).resolve()
