"""Several fork servers at work: one core each, nothing shared between them."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import IO, Any

from opgen.diagnostics import OpgenError
from opgen.truth.failing import PROCESS, Failure
from opgen.truth.probe import Task

__all__ = ["answers", "environment"]

# An overload that takes the server itself down twice is not tried again.
_ATTEMPTS = 2
# One thread in each process, and no line on standard error for each of thousands of warnings and refusals.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "MUDNN_LOG_LEVEL": "FATAL",
}


def environment() -> dict[str, str]:
    """For a process that runs operators beside others."""
    return {**os.environ, **_ENVIRONMENT}


class _Server:
    """A process of opgen.truth.server and the task that it is at."""

    def __init__(self, errors: IO[str]) -> None:
        # the package that runs here, wherever the server's working folder is
        command = [sys.executable, "-m", "opgen.truth.server"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment(), start_new_session=True
        )
        self.task: Task | None = None
        self.ready = False

    def give(self, task: Task) -> None:
        assert self.process.stdin is not None
        self.task = task
        with contextlib.suppress(BrokenPipeError):  # its end is noticed where its answer is read
            print(json.dumps(asdict(task)), file=self.process.stdin, flush=True)

    def answer(self) -> dict[str, Any] | None:
        """What it has to say; None at its end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def end(self) -> None:
        self.process.kill()  # what it has forked ends with it
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def answers(tasks: Iterable[Task], jobs: int) -> Iterator[dict[str, Any]]:
    """The answer to each task (see `opgen.truth.server`), as they come. Closing the iterator ends what is running.

    Raises OpgenError where a server cannot start: PyTorch or the backend does not import.
    """
    left = deque(tasks)
    attempts = dict.fromkeys((task.op for task in left), 0)
    running: set[_Server] = set()
    with selectors.DefaultSelector() as selector, tempfile.TemporaryFile("w+") as errors:

        def start() -> None:
            server = _Server(errors)
            running.add(server)
            assert server.process.stdout is not None
            selector.register(server.process.stdout, selectors.EVENT_READ, server)

        def stop(server: _Server) -> None:
            assert server.process.stdout is not None
            selector.unregister(server.process.stdout)
            running.discard(server)
            server.end()

        try:
            for _ in range(min(jobs, len(left))):
                start()
            while running:
                for key, _ in selector.select():
                    server: _Server = key.data
                    answer = server.answer()
                    if answer is None and not server.ready:
                        raise _does_not_start(errors)
                    if answer is None:
                        task = server.task
                        stop(server)
                        if task is not None and attempts[task.op] < _ATTEMPTS:
                            left.appendleft(task)
                        elif task is not None:
                            yield _took_the_server_down(task)
                        if left:
                            start()
                        continue
                    if server.ready:
                        yield answer
                    server.ready = True
                    if left:
                        task = left.popleft()
                        attempts[task.op] += 1
                        server.give(task)
                    else:
                        stop(server)
        finally:
            for server in running:
                server.end()


def _took_the_server_down(task: Task) -> dict[str, Any]:
    reason = "the process that watches over it was killed, twice: memory ran out?"
    failure = asdict(Failure(PROCESS, reason))
    return {"op": task.op, "reference": "", "failure": failure, "reason": None, "dtypes": {}, "calls": [], "seconds": 0}


def _does_not_start(errors: IO[str]) -> OpgenError:
    errors.seek(0)
    said = errors.read()
    last = said.strip().splitlines()[-1] if said.strip() else "it says nothing"
    return OpgenError(
        f"the process that runs operators does not start: {last}",
        hint="`python -c 'import torch, torch_musa'` shows more; `opgen build` makes the backend",
    )
