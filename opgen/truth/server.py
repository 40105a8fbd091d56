"""A fork server: it has imported PyTorch and touched no device, so that a process for an overload costs milliseconds.

`python -m opgen.truth.server` reads a task in each line of standard input and answers with a line for each, in order.
The process that it forks for a task runs the cases; where that one crashes or hangs, the next one goes on behind the
dtype in which it happened. The server itself has one thread and never uses the device: a process forked from one that
did would get errors from every call.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from opgen.backend import MUSA
from opgen.truth.failing import PROCESS, Failure, loading
from opgen.truth.heartbeat import Beat, Heartbeat
from opgen.truth.judging import crashed, hung, sentence
from opgen.truth.probe import Task, probe

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_SAID_BYTES = 4096
# Before the first case: importing what a task loads, starting the device, trying the CPU's dtypes.
_START_FACTOR = 4


@dataclass
class _Child:
    """How a forked process went."""

    messages: list[dict[str, Any]]
    status: int
    hung: bool
    seconds: float
    """Of the CPU."""
    said: str
    """The end of what it wrote to its standard streams."""


def main() -> None:
    """Serve until standard input ends."""
    _die_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # what libraries print must not come between the answers
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _import()
    beat = Heartbeat()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_serve(Task.from_json(json.loads(line)), beat)), file=answers, flush=True)


def _import() -> None:
    """All that is slow and the same for every task."""
    import torch

    if not hasattr(torch, MUSA.name):
        raise SystemExit(f"PyTorch {torch.__version__} has no device '{MUSA.name}'")
    torch.set_num_threads(1)
    import opgen.testing.gradients
    import opgen.testing.survey

    with contextlib.suppress(Exception):  # what a first run imports and compiles
        opgen.testing.survey.survey("neg", torch.float32, count=2, device="cpu")
    gc.collect()
    gc.freeze()  # collections in children must not copy the pages of what is here to stay


def _serve(task: Task, beat: Heartbeat) -> dict[str, Any]:
    """The answer to one task: what a Record needs of it."""
    dtypes: dict[str, Any] = {}
    calls: set[str] = set()
    answer: dict[str, Any] = {"op": task.op, "reference": "", "reason": None, "failure": None, "seconds": 0.0}
    answer["dtypes"] = dtypes
    while True:
        child = _run(replace(task, skip=tuple(dtypes)), beat)
        answer["seconds"] += child.seconds
        for message in child.messages:
            if "dtype" in message:
                dtypes[message["dtype"]] = message["result"]
                calls.update(message["calls"])
            answer["reference"] = message.get("reference", answer["reference"])
            for name in ("reason", "failure"):
                answer[name] = message.get(name, answer[name])
        if child.messages and "end" in child.messages[-1]:
            break
        last = beat.last()
        how = _how(child.status)
        if not last.dtype or last.dtype in dtypes:
            ended = f"no answer within {task.timeout * _START_FACTOR:g} s" if child.hung else how
            if last.phase == "trying" and not child.hung:
                where = "the reference, while its dtypes are tried:"
                answer["reason"] = " ".join(filter(None, (where, ended, sentence(child.said))))
            else:
                answer["failure"] = asdict(_before_the_first_case(last, ended, sentence(child.said)))
            break
        found = hung(last, task.timeout) if child.hung else crashed(last, how, child.said)
        dtypes[last.dtype] = asdict(found)
    answer["calls"] = sorted(calls)
    if dtypes:
        answer["reason"] = None
    return answer


def _run(task: Task, beat: Heartbeat) -> _Child:
    """Fork, run, and wait: for the end of the process, or for a call that does not come back."""
    beat.clear()
    reading, writing = os.pipe()
    output = os.memfd_create("output")
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_child(task, beat, writing, output)
    os.close(writing)
    received, was_hung = _receive(reading, pid, beat, task.timeout)
    os.close(reading)
    _, status, usage = os.wait4(pid, 0)
    said = os.pread(output, _SAID_BYTES, max(0, os.fstat(output).st_size - _SAID_BYTES)).decode(errors="replace")
    os.close(output)
    messages = [json.loads(line) for line in received.split(b"\n")[:-1]]
    return _Child(messages, status, was_hung, usage.ru_utime + usage.ru_stime, said)


def _receive(reading: int, pid: int, beat: Heartbeat, timeout: float) -> tuple[bytes, bool]:
    """All that the child sends; the second is True where it had to be killed."""
    received = b""
    count, since = 0, time.monotonic()
    while True:
        ready, _, _ = select.select([reading], [], [], min(1.0, timeout / 4))
        if ready:
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                return received, False
            received += chunk
        if beat.count() != count or ready:
            count, since = beat.count(), time.monotonic()
        elif time.monotonic() - since > timeout * (1 if beat.last().dtype else _START_FACTOR):
            os.kill(pid, signal.SIGKILL)
            return received, True


def _be_child(task: Task, beat: Heartbeat, writing: int, output: int) -> None:
    """What the forked process does, to its end."""
    _die_with_parent()
    for stream in (1, 2):
        os.dup2(output, stream)

    def send(message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(writing, data) :]

    status = 1
    try:
        probe(task, beat, send)
        status = 0
    finally:
        os._exit(status)  # nothing of the server's is this process's to clean up


def _before_the_first_case(last: Beat, ended: str, said: str) -> Failure:
    if last.phase == "loading":
        return loading(last.script, ended, said)
    where = "the reference, while its dtypes are tried:" if last.phase == "trying" else "before the first case:"
    return Failure(PROCESS, " ".join(filter(None, (where, ended, said))))


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"crashed with {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended its process with status {os.WEXITSTATUS(status)}"


def _die_with_parent() -> None:
    """Whoever started this process may be killed and leave nobody to end it."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main()
