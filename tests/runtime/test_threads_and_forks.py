"""Several threads on one device; forks."""

from __future__ import annotations

import gc
import threading

import pytest
import torch


@pytest.mark.needs("two devices")
def test_threads_work_side_by_side():
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            device = f"musa:{seed % 2}"
            cpu = torch.full((64, 64), float(seed))
            with torch.musa.stream(torch.musa.Stream(device=device)):
                for i in range(30):
                    x = cpu.to(device)
                    y = x @ x + i
                    assert torch.allclose(y.cpu(), cpu @ cpu + i)
                    assert y.device == torch.device(device)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_tensors_may_die_on_another_thread():
    gc.collect()
    before = torch.musa.memory_allocated()
    tensors = [torch.ones(1000, device="musa") for _ in range(50)]
    assert torch.musa.memory_allocated() >= before + 50 * 4000
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert torch.musa.memory_allocated() == before


@pytest.mark.needs("two devices")
def test_backward_runs_on_the_device_of_the_graph():
    x = torch.ones(4, device="musa:1", requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.device.index == 1 and x.grad.tolist() == [2] * 4


def test_fork_after_use_is_refused_clearly(run_python):
    run_python(
        """
        import os, torch

        torch.ones(1, device="musa")
        child = os.fork()
        if child == 0:
            assert torch.musa._is_in_bad_fork()
            torch.manual_seed(0)  # must not touch the device
            assert torch.ones(2).sum().item() == 2
            try:
                torch.ones(1, device="musa")
            except RuntimeError as error:
                text = str(error)
                os._exit(0 if "Cannot re-initialize MUSA in forked subprocess" in text and "spawn" in text else 2)
            os._exit(3)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
        assert torch.ones(2, device="musa").sum().item() == 2
        """
    )


@pytest.mark.needs("two devices")
def test_fork_before_use_is_fine(run_python):
    run_python(
        """
        import os, torch

        assert torch.musa.device_count() == 2 and not torch.musa.is_initialized()
        child = os.fork()
        if child == 0:
            ok = torch.ones(3, device="musa").sum().item() == 3
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
        assert torch.ones(2, device="musa").sum().item() == 2
        """
    )
