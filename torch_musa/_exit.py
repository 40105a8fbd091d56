"""What has to be done before Python ends.

PyTorch's autograd has a thread for each device. The last thing such a thread does in a backward pass is to let go of
the pass, by then without anybody waiting for it, and with the pass goes a Python object (the caller's contextvars, in
torch/autograd/graph.py), for which it needs the interpreter's lock. Before Python 3.14 a thread that asks for the lock
while Python finalizes is ended where it stands: here within a destructor, and the process dies of "terminate called
without an active exception". So before Python finalizes, the threads are waited for.
"""

from __future__ import annotations

import atexit
import contextlib
from pathlib import Path

import torch


def register() -> None:
    """Have Python wait for autograd's threads when it exits."""
    atexit.register(_wait_for_autograd)


def _wait_for_autograd() -> None:
    """Returns when every autograd thread has let go of the passes it took part in.

    A thread does one thing after the other, so a pass that is done has let go of those before it. The calls are those
    of `Tensor.backward` without what it stashes: this pass leaves no Python object behind.
    """
    from torch_musa import musa

    if not musa.is_initialized() or musa._is_in_bad_fork():
        return
    for index in _devices_with_a_thread():
        # A device that no longer works (a kernel that faulted) has a thread that works, and gives no memory: the pass
        # has no elements. What it says of the device is not asked here.
        with contextlib.suppress(RuntimeError):
            if musa.memory_stats(index)["allocated_bytes.all.allocated"] == 0:
                continue
            leaf = torch.empty(0, device=f"musa:{index}", requires_grad=True)
            torch.autograd.Variable._execution_engine.run_backward(
                (leaf.view(0),), (torch.empty(0, device=leaf.device),), False, False, (), True, True
            )


def _devices_with_a_thread() -> list[int]:
    """The devices whose autograd threads have been started; to start one here would be the same race again."""
    names = []
    for task in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            names.append(task.read_text(encoding="utf-8").strip())
    prefix = "pt_autograd_"
    return sorted(int(name.removeprefix(prefix)) for name in names if name.removeprefix(prefix).isdigit())
