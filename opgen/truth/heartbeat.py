"""What a probing process is doing right now, in memory that outlives it: when it crashes or hangs, its parent knows
the case, and how to make it again."""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import asdict, dataclass

__all__ = ["Beat", "Heartbeat"]

_HEADER = struct.Struct("<QQ")
_BYTES = 4 << 20


@dataclass(frozen=True)
class Beat:
    """The state at one moment."""

    dtype: str = ""
    """The main dtype being tried; empty before the first."""
    case: int = 0
    """The number of the case in that dtype, from 1."""
    phase: str = ""
    """loading: what the task loads (``script`` names the file); starting; trying: which dtypes the reference takes;
    reference: only the CPU has been asked for this case; device: from the call on the device on; gradients: in
    backward."""
    script: str = ""
    """A program that makes the case again."""


class Heartbeat:
    """Memory shared by a process and those it forks. One writes, the other reads once the writer is gone or stuck."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BYTES)
        self._count = 0
        self._beat = Beat()

    def note(self, beat: Beat) -> None:
        """Say what comes next. A script that is too long for the memory is left out."""
        self._beat = beat
        text = json.dumps(asdict(beat)).encode()
        if len(text) > _BYTES - _HEADER.size:
            text = json.dumps({**asdict(beat), "script": ""}).encode()
        self._memory[_HEADER.size : _HEADER.size + len(text)] = text
        self._count += 1
        self._memory[: _HEADER.size] = _HEADER.pack(self._count, len(text))

    def phase(self, phase: str) -> None:
        """The same case, one step on."""
        if self._beat.phase != phase:
            self.note(Beat(self._beat.dtype, self._beat.case, phase, self._beat.script))

    def count(self) -> int:
        """How many notes there have been: as long as it grows, the writer lives."""
        return int(_HEADER.unpack(self._memory[: _HEADER.size])[0])

    def last(self) -> Beat:
        """The last note."""
        length = _HEADER.unpack(self._memory[: _HEADER.size])[1]
        return Beat(**json.loads(self._memory[_HEADER.size : _HEADER.size + length])) if length else Beat()

    def clear(self) -> None:
        """Forget all notes."""
        self._count = 0
        self._beat = Beat()
        self._memory[: _HEADER.size] = _HEADER.pack(0, 0)
