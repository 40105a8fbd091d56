"""Products of two matrices of floats, which a target may compute without ATen: what lies in memory in any order."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

# A size of one has no order of its own; 65 is no multiple of what kernels take at a time.
SIZES = [1, 2, 3, 64, 65]


def by_rows(t: Tensor) -> Tensor:
    return t.clone()


def by_columns(t: Tensor) -> Tensor:
    return t.t().contiguous().t()


def with_gaps(t: Tensor) -> Tensor:
    return torch.stack([t, t], -1).flatten(1)[:, ::2]


ORDERS = [by_rows, by_columns, with_gaps]


def operands(rows: int, depth: int, columns: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows * 10_000 + depth * 100 + columns)
    left, right = (torch.randn(*size, generator=generator) for size in ((rows, depth), (depth, columns)))
    return left.to(dtype), right.to(dtype)


def check(ours: Tensor, left: Tensor, right: Tensor) -> None:
    expected = torch.mm(left.double(), right.double()).to(left.dtype)
    tolerance = {"rtol": 1e-5, "atol": 1e-3} if left.dtype == torch.float32 else {}
    torch.testing.assert_close(ours.cpu(), expected, **tolerance)


@pytest.mark.parametrize("order_of_left", ORDERS)
@pytest.mark.parametrize("order_of_right", ORDERS)
def test_operands_lie_in_any_order(order_of_left, order_of_right):
    for rows, depth, columns in itertools.product(SIZES, repeat=3):
        left, right = operands(rows, depth, columns)
        ours = torch.mm(order_of_left(left.to("musa")), order_of_right(right.to("musa")))
        assert ours.is_contiguous()
        check(ours, left, right)


@pytest.mark.parametrize("order", ORDERS)
def test_results_lie_in_any_order(order):
    left, right = operands(5, 7, 3)
    out = order(torch.full((5, 3), float("nan"), device="musa"))
    assert torch.mm(left.to("musa"), right.to("musa"), out=out) is out
    check(out, left, right)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types(dtype):
    left, right = operands(64, 65, 3, dtype)
    check(torch.mm(left.to("musa"), right.to("musa")), left, right)
    check(torch.mm(left.to("musa"), by_columns(right.to("musa"))), left, right)


def test_a_matrix_times_its_own_transpose():
    left, _ = operands(64, 64, 64)
    ours = left.to("musa")
    check(torch.mm(ours, ours.t()), left, left.t())
    check(torch.mm(ours, ours), left, left)


def test_operands_begin_anywhere_in_memory():
    left, right = operands(6, 5, 4)
    memory = torch.cat([torch.zeros(1), left.flatten(), torch.zeros(1), right.flatten()]).to("musa")
    ours = torch.mm(memory[1:31].view(6, 5), memory[32:].view(5, 4))
    check(ours, left, right)


def test_nan_and_infinity_are_the_operands_alone():
    left, right = operands(4, 4, 4)
    left[1, 2] = float("inf")
    out = torch.full((4, 4), float("nan"), device="musa")
    torch.mm(left.to("musa"), right.to("musa"), out=out)
    check(out, left, right)


def test_streams_keep_the_order():
    left, right = operands(64, 64, 64)
    ours, other = left.to("musa"), right.to("musa")
    stream = torch.musa.Stream()
    stream.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(stream):
        for _ in range(20):
            first = torch.mm(ours, other)
            second = torch.mm(first, other)
    torch.musa.current_stream().wait_stream(stream)
    check(first, left, right)
    check(second, first.cpu(), right)


def test_a_graph_multiplies_at_each_replay():
    left, right = operands(64, 64, 64)
    ours, other = left.to("musa"), right.to("musa")
    torch.mm(ours, other)
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        out = torch.mm(ours, other)
    for factor in (1, 2):
        ours.copy_(left * factor)
        graph.replay()
        check(out, left * factor, right)


@pytest.mark.needs("two devices")
def test_the_second_device_multiplies_whichever_is_current():
    left, right = operands(64, 65, 3)
    ours = torch.mm(left.to("musa:1"), right.to("musa:1"))
    assert ours.device == torch.device("musa:1")
    check(ours, left, right)


@pytest.mark.needs("cuda")
def test_on_a_gpu_every_bit_is_native_cudas():
    for sizes in ((2, 2, 2), (64, 64, 64), (65, 3, 64), (512, 1024, 256)):
        left, right = operands(*sizes)
        for order_of_left, order_of_right in itertools.product(ORDERS[:2], repeat=2):
            ours = torch.mm(order_of_left(left.to("musa")), order_of_right(right.to("musa")))
            native = torch.mm(order_of_left(left.to("cuda")), order_of_right(right.to("cuda")))
            assert torch.equal(ours.cpu(), native.cpu())
