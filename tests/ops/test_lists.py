"""Lists of tensors: what serves a whole list in a launch computes what a loop over its tensors does.

The checks of `test_overloads.py` draw a few small tensors; here are lists that one launch does not hold, tensors that
one block does not, and what torch.optim makes of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

CHUNK = 65536  # elements that a block takes
LISTS = {
    "more tensors than a launch takes": [(1 + i % 7,) for i in range(150)],
    "tensors of several chunks, of one and of none": [(CHUNK - 1,), (2 * CHUNK + 4,), (), (0, 3), (4, CHUNK), (8,)],
}
MORE_CHUNKS_THAN_A_LAUNCH_TAKES = [(5,), (CHUNK * 322 + 1,), (7,)]
Work = Callable[[list[Tensor], list[Tensor], list[Tensor]], object]
IN_PLACE: dict[str, Work] = {
    "add": lambda a, b, c: torch._foreach_add_(a, b, alpha=0.5),
    "mul": lambda a, b, c: torch._foreach_mul_(a, 0.75),
    "div": lambda a, b, c: torch._foreach_div_(a, [float(1 + i) for i in range(len(a))]),
    "sqrt": lambda a, b, c: torch._foreach_sqrt_(a),
    "lerp": lambda a, b, c: torch._foreach_lerp_(a, b, 0.25),
    "addcmul": lambda a, b, c: torch._foreach_addcmul_(a, b, c, 0.5),
    "addcdiv": lambda a, b, c: torch._foreach_addcdiv_(a, b, c, [float(1 + i) for i in range(len(a))]),
}


def random_list(shapes: list[tuple[int, ...]]) -> list[Tensor]:
    return [torch.rand(shape) + 0.5 for shape in shapes]


@pytest.mark.parametrize("shapes", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("operator", IN_PLACE)
def test_a_list_is_computed_whole_whatever_a_launch_takes(
    operator: str, shapes: list[tuple[int, ...]], device: str
) -> None:
    compare(operator, shapes, device)


@pytest.mark.parametrize("operator", ["add", "div"])  # one number for all, and one for each tensor
def test_a_tensor_of_more_chunks_than_a_launch_takes_goes_on_in_the_next(operator: str, device: str) -> None:
    compare(operator, MORE_CHUNKS_THAN_A_LAUNCH_TAKES, device)


def compare(operator: str, shapes: list[tuple[int, ...]], device: str) -> None:
    torch.manual_seed(0)
    on_cpu = [random_list(shapes) for _ in range(3)]
    on_device = [[tensor.to(device) for tensor in tensors] for tensors in on_cpu]
    IN_PLACE[operator](*on_cpu)
    IN_PLACE[operator](*on_device)
    for actual, expected in zip(on_device[0], on_cpu[0], strict=True):
        torch.testing.assert_close(actual.cpu(), expected, rtol=2e-6, atol=2e-6)


def test_a_list_that_shares_its_storage_until_it_is_written_parts_from_it(device: str) -> None:
    kept = torch.ones(5, device=device)
    copies = [torch._lazy_clone(kept), torch._lazy_clone(kept)]
    torch._foreach_add_(copies, 1.0)
    assert kept.tolist() == [1.0] * 5
    assert [copy.tolist() for copy in copies] == [[2.0] * 5] * 2


OPTIMIZERS: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda params: torch.optim.Adam(params, lr=0.1, weight_decay=0.01),
    "AdamW": lambda params: torch.optim.AdamW(params, lr=0.1, maximize=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_calls_as_many_kernels_for_many_parameters_as_for_one(name: str, device: str) -> None:
    if device != "musa":
        pytest.skip("counts calls of this backend's kernels")

    def calls(parameters: int) -> dict[str, int]:
        params = [torch.ones(3, 5, device=device, requires_grad=True) for _ in range(parameters)]
        for param in params:
            param.grad = torch.full_like(param, 0.5)
        optimizer = OPTIMIZERS[name](params)
        optimizer.step()
        with torch.musa.count_ops() as counts:
            optimizer.step()
        return {op: count for op, count in counts.items() if op.startswith("_foreach") or counts.family(op) == "ported"}

    of_many = calls(20)
    assert of_many == calls(1)
    assert len(of_many) >= 3


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_equals_the_one_tensor_by_tensor(name: str, device: str) -> None:
    torch.manual_seed(0)
    together = [torch.randn(shape, device=device, requires_grad=True) for shape in ((3, 5), (7,), (1,))]
    alone = [param.detach().clone().requires_grad_() for param in together]
    optimizers = [OPTIMIZERS[name](params) for params in (together, alone)]
    for group in optimizers[1].param_groups:
        group["foreach"] = False
    for _ in range(3):
        for one, other in zip(together, alone, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
