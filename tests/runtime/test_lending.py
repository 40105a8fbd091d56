"""Target cuda: ATen's operators make their results in the memory that they are lent, and nobody else notices."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.needs("cuda")

OPERATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "batch_norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "max_pool2d": lambda x: torch.nn.functional.max_pool2d(x, 2),
    "avg_pool2d": lambda x: torch.nn.functional.avg_pool2d(x, 2),
    "conv2d": lambda x: torch.nn.functional.conv2d(x, torch.ones(4, x.shape[1], 3, 3, device=x.device), padding=1),
}


def gradient(name: str, x: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    out = OPERATORS[name](leaf)
    (found,) = torch.autograd.grad(out, leaf, torch.ones_like(out))
    return found


@pytest.mark.parametrize("name", ["batch_norm", "max_pool2d", "avg_pool2d"])
def test_a_gradient_takes_no_memory_of_atens(name):
    # 24 MiB: ATen's workspaces have 32 on some GPUs, and what may be one is not lent.
    x = torch.randn(12, 8, 256, 256, device="musa")
    torch.cuda.init()  # no statistics before
    gradient(name, x)
    torch.musa.synchronize()
    leaf = x.detach().requires_grad_()
    out = OPERATORS[name](leaf)
    seed = torch.ones_like(out)
    before = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
    torch.autograd.grad(out, leaf, seed)
    taken = torch.cuda.memory_stats()["allocated_bytes.all.allocated"] - before
    assert taken < x.nbytes // 2, "what is made elsewhere has to be copied"


def test_threads_that_lend_and_threads_that_allocate_do_not_meet():
    x = torch.randn(4, 8, 64, 64)
    expected = {name: gradient(name, x) for name in OPERATORS}
    failures: list[BaseException] = []

    def lend(name: str) -> None:
        try:
            there = x.to("musa")
            for _ in range(50):
                torch.testing.assert_close(gradient(name, there).cpu(), expected[name], rtol=1e-4, atol=1e-4)
        except BaseException as error:
            failures.append(error)

    def allocate(number: int) -> None:
        try:
            kept = []
            for step in range(300):
                # as large as what is lent
                kept.append(torch.full(x.shape, float(number * 1000 + step), device="cuda"))
                if len(kept) > 8:
                    oldest = kept.pop(0)
                    assert oldest.unique().tolist() == [number * 1000.0 + step - 8]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=lend, args=(name,)) for name in OPERATORS]
    threads += [threading.Thread(target=allocate, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_what_an_operator_refuses_leaves_the_allocator_as_it_was():
    x = torch.randn(2, 3, 8, 8, device="musa")
    with pytest.raises(RuntimeError):
        torch.ops.aten.max_pool2d_with_indices_backward(
            x[:, :, :4, :4].contiguous(),
            x,
            [2],
            [2],
            [0],
            [1],
            False,
            torch.zeros(1, 1, 1, 1, dtype=torch.long, device="musa"),
        )
    torch.cuda.init()
    before = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
    kept = torch.ones(1 << 20, device="cuda")
    assert torch.cuda.memory_stats()["allocated_bytes.all.allocated"] - before >= kept.nbytes
    torch.testing.assert_close(gradient("batch_norm", x).cpu(), gradient("batch_norm", x.cpu()), rtol=1e-4, atol=1e-4)
    assert kept.unique().tolist() == [1.0]
