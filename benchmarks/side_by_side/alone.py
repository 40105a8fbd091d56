"""The native device in a process of its own, which this backend is not loaded in.

With a backend under PrivateUse1, PyTorch's accelerator is that backend's device, and its autograd engine keeps streams
for the accelerator alone: a backward pass on `cuda` ends in an assertion (torch/csrc/autograd/engine.cpp). So training
on the native device runs here, and its kernels are looked at here. One process serves all cases.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "side_by_side.native"]


def environment() -> dict[str, str]:
    paths = [str(Path(__file__).resolve().parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


class Alone:
    """Its side of the conversation: one JSON object a line each way. The process starts with the first question."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, device: str, do: str, **what: Any) -> Any:
        """What the process answers. Raises RuntimeError with its reason, or for its end."""
        if self._process is None:
            self._process = subprocess.Popen(
                [*COMMAND, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(json.dumps({"do": do, **what}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            code = self.close()
            raise RuntimeError(f"the process of {device} alone ended with code {code}")
        answer = json.loads(line)
        if "failed" in answer:
            raise RuntimeError(f"{device} alone: {answer['failed']}")
        return answer["is"]

    @contextlib.contextmanager
    def case(self, device: str, key: str) -> Iterator[None]:
        """While it holds the case, `first` and `sample` run its call."""
        self.ask(device, "begin", case=key)
        try:
            yield
        finally:
            if self._process is not None:
                self.ask(device, "end")

    def first(self, device: str) -> float:
        """One call's result, a number."""
        return float(self.ask(device, "first"))

    def sample(self, device: str, count: int) -> float:
        """Seconds of one call, of so many in a row, with all of their work."""
        return float(self.ask(device, "sample", count=count))

    def close(self) -> int | None:
        """Ends the process; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        with contextlib.suppress(OSError):
            process.communicate()
        return process.wait()
