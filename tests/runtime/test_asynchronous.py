"""MUSA_LAUNCH_BLOCKING=0: calls return before their work is done, and PyTorch's rules still give right results."""

from __future__ import annotations

import re

import pytest
import torch

ASYNC = {"MUSA_LAUNCH_BLOCKING": "0"}

BROKEN = r"unspecified launch failure \(musaErrorLaunchFailure|device-side assert triggered \(musaErrorAssert"
"""What a device says after an index that is out of range; kernels of CUDA assert."""


def test_training_gives_the_same_numbers_as_with_blocking_launches(run_python):
    code = """
        import torch
        torch.manual_seed(0)
        from torch import nn
        net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3),
                            nn.Linear(8 * 36, 10)).to("musa")
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        x = torch.randn(64, 1, 8, 8).to("musa", non_blocking=True)
        y = torch.randint(0, 10, (64,)).to("musa", non_blocking=True)
        for _ in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        print(f"{loss.item():.6f}")
    """
    results = {run_python(code, MUSA_LAUNCH_BLOCKING=mode).stdout for mode in ("0", "1")}
    assert len(results) == 1


def test_a_pinned_buffer_is_not_handed_out_again_while_its_copy_is_in_flight(run_python):
    run_python(
        """
        import torch
        out = []
        for i in range(200):
            source = torch.full((100_000,), float(i)).pin_memory()
            out.append(source.to("musa", non_blocking=True))
            del source  # the host allocator must wait for the copy before it gives the memory to the next
        for i, x in enumerate(out):
            assert x.min().item() == x.max().item() == i, i
        """,
        **ASYNC,
    )


def test_memory_used_on_another_stream_is_kept_by_record_stream(run_python):
    run_python(
        """
        import torch
        side = torch.musa.Stream()
        for i in range(100):
            x = torch.full((50_000,), float(i), device="musa")
            side.wait_stream(torch.musa.current_stream())
            with torch.musa.stream(side):
                y = x
                for _ in range(5):
                    y = y + 1
            x.record_stream(side)
            del x
            torch.full((50_000,), -1.0, device="musa")  # would take the memory
            torch.musa.current_stream().wait_stream(side)
            assert y.min().item() == y.max().item() == i + 5
        """,
        **ASYNC,
    )


@pytest.mark.needs("cache")  # without it freeing a product waits for it
def test_events_tell_when_work_is_done(run_python):
    run_python(
        """
        import torch
        a = torch.randn(1500, 1500, device="musa")
        torch.musa.synchronize()
        start, end = torch.musa.Event(enable_timing=True), torch.musa.Event(enable_timing=True)
        start.record()
        for _ in range(5):
            a = a @ a / 100
        end.record()
        assert not end.query(), "the products cannot be done already"
        end.synchronize()
        assert end.query() and start.elapsed_time(end) > 0
        """,
        **ASYNC,
    )


def test_a_copy_to_pinned_memory_arrives_at_the_synchronization(run_python):
    run_python(
        """
        import torch
        x = torch.arange(1_000_000, device="musa")
        host = torch.zeros(1_000_000, dtype=torch.int64).pin_memory()
        for _ in range(20):
            x = x + 1
        host.copy_(x, non_blocking=True)
        torch.musa.current_stream().synchronize()
        assert torch.equal(host, torch.arange(1_000_000) + 20)
        """,
        **ASYNC,
    )


@pytest.mark.parametrize("mode", ["0", "1"])
def test_threads_and_streams_together(run_python, mode):
    run_python(
        """
        import threading, torch
        results = {}
        def work(i):
            stream = torch.musa.Stream()
            with torch.musa.stream(stream):
                x = torch.full((10_000,), float(i), device="musa")
                for _ in range(50):
                    x = x * 2 / 2 + 1
                results[i] = x.cpu()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        for i in range(8):
            assert torch.equal(results[i], torch.full((10_000,), float(i + 50))), i
        """,
        MUSA_LAUNCH_BLOCKING=mode,
    )


def test_a_process_may_end_with_work_in_flight(run_python):
    run_python(
        """
        import torch
        a = torch.randn(1000, 1000, device="musa")
        for _ in range(50):
            a = a @ a / 100
        """,
        **ASYNC,
    )


def test_a_process_may_end_right_after_a_backward_pass(run_python):
    """Autograd's thread lets go of the pass when it comes to it, with the interpreter's lock: torch_musa/_exit.py.

    So long a switch interval keeps the lock from it until Python gives it away. Without the waiting about every fourth
    of these processes dies.
    """
    run_python(
        """
        import os, sys, torch
        for _ in range(10):
            child = os.fork()
            if child == 0:
                x = torch.ones(4, device="musa", requires_grad=True)
                sys.setswitchinterval(1000)
                for _ in range(3):
                    (x * 2).sum().backward()
                sys.exit()
            assert os.waitpid(child, 0)[1] == 0
        """,
        **ASYNC,
    )


# Leaves the device broken, and known to be.
BREAK = """
import contextlib, torch

def break_device():
    with contextlib.suppress(RuntimeError):
        torch.ones(4, 5, device="musa").index_select(0, torch.tensor([17], device="musa"))
        torch.musa.synchronize()
"""


@pytest.mark.parametrize("uncached", [None, "1"], ids=["cached", "uncached"])
def test_a_process_may_end_with_a_device_that_no_longer_works(run_python, uncached):
    run_python(
        """
        import torch
        x = torch.ones(4, device="musa", requires_grad=True)
        (x * 2).sum().backward()
        torch.ones(4, 5, device="musa").index_select(0, torch.tensor([17], device="musa"))
        """,
        PYTORCH_NO_MUSA_MEMORY_CACHING=uncached,
        **ASYNC,
    )


def test_a_process_may_end_while_a_device_breaks(run_python):
    """Between the last thing that Python's exit asks of it and what autograd's thread is given there."""
    done = run_python(
        BREAK
        + """
x = torch.ones(4, device="musa", requires_grad=True)
(x * 2).sum().backward()
empty = torch.empty

def empty_and_break(*args, **kwargs):
    made = empty(*args, **kwargs)
    if "requires_grad" not in kwargs:
        break_device()
        print("broken")
    return made

torch.empty = empty_and_break
""",
        **ASYNC,
    )
    assert done.stdout == "broken\n"


def test_a_process_may_end_right_after_a_backward_pass_on_a_device_that_broke(run_python):
    """Autograd's thread is waited for although the device gives no memory to do it with."""
    done = run_python(
        BREAK
        + """
import os, sys
for _ in range(10):
    child = os.fork()
    if child == 0:
        x = torch.ones(4, device="musa", requires_grad=True)
        given = torch.ones(4, device="musa")
        ys = [x * i for i in range(3)]
        break_device()
        with contextlib.suppress(RuntimeError):
            torch.empty(4, device="musa")
            print("memory")
        sys.setswitchinterval(1000)
        for y in ys:
            with contextlib.suppress(RuntimeError):
                y.backward(given)
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
""",
        PYTORCH_NO_MUSA_MEMORY_CACHING="1",
        **ASYNC,
    )
    assert done.stdout == ""


@pytest.mark.parametrize("before", ["(x * 2).backward(given)", ""], ids=["known-thread", "new-thread"])
def test_a_backward_pass_on_a_device_that_broke_ends_no_process(run_python, before):
    """Autograd's threads make their device current where nobody catches: it is a later call that tells."""
    done = run_python(
        BREAK
        + f"""
x = torch.ones(4, device="musa", requires_grad=True)
given = torch.ones(4, device="musa")
{before}
y = x * 3
break_device()
try:
    y.backward(given)
    torch.musa.synchronize()
except RuntimeError as error:
    print(error)
""",
        **ASYNC,
    )
    assert re.search(BROKEN, done.stdout)


def test_a_fault_of_a_kernel_shows_later_and_sticks(run_python):
    done = run_python(
        """
        import torch
        x = torch.ones(4, 5, device="musa").index_select(0, torch.tensor([17], device="musa"))
        for attempt in range(2):
            try:
                torch.musa.synchronize()
            except RuntimeError as error:
                print(error)
        """,
        **ASYNC,
    )
    assert len(re.findall(BROKEN, done.stdout)) == 2
    if torch.musa.target() == "host":
        assert "work on a stream (Gather::Run) failed: EXECUTION_FAILED, " in done.stderr and "17" in done.stderr


def test_an_integer_divided_by_zero_breaks_no_device(run_python):
    """As on a card: some number is written, and what comes later works."""
    done = run_python(
        """
        import torch
        x, by = torch.tensor([7, 7], device="musa"), torch.tensor([0, 2], device="musa")
        results = [x // by, x % by, torch.fmod(x, by), torch.div(x, by, rounding_mode="trunc")]
        torch.musa.synchronize()
        print([result[1].item() for result in results])
        """,
        **ASYNC,
    )
    assert done.stdout == "[3, 1, 1, 3]\n"


@pytest.mark.needs("host")  # a card names the kernel itself, if at all
def test_what_fails_later_is_named_as_people_name_it(run_python):
    """By the library's call or the kernel, never by a C++ type; and a call that waits for its result fails itself."""
    failed = {
        "Gather::Run": "torch.ones(4, 5, device='musa').index_select(0, torch.tensor([17], device='musa'))",
        "elementwise kernel": "torch.nn.functional.binary_cross_entropy(x + 1, x)",
        "each_kernel": "x.take(torch.tensor([99], device='musa'))",
    }
    for name, call in failed.items():
        code = f"import torch\nx = torch.ones(4, device='musa')\ntry:\n    {call}\n    torch.musa.synchronize()\n"
        done = run_python(code + "except RuntimeError as error:\n    print('failed')", **ASYNC)
        assert done.stdout == "failed\n", done.stdout + done.stderr
        assert f"work on a stream ({name}) failed: " in done.stderr, done.stderr
