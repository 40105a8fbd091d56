"""Dropout by a seed: the same numbers on every target, whatever memory the operands lie in."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
# Shorter and longer than what a thread of a GPU takes at a time, and more than all threads take.
SIZES = [*range(1, 18), 1000, 40_003]
P = 0.3


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011, table 2 and section 4.3)."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = second >> 32 ^ c1 ^ k0, second & 0xFFFFFFFF, first >> 32 ^ c3 ^ k1, first & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def expected_mask(count: int, p: float, seed: int, offset: int = 0) -> Tensor:
    """Element i keeps by word i % 4 of subsequence i / 4."""
    key, block = [seed & 0xFFFFFFFF, seed >> 32], offset // 4
    words = [philox([block, 0, group, 0], key) for group in range((count + 3) // 4)]
    return (torch.tensor(words, dtype=torch.int64).flatten()[:count].double() * 2.0**-32) >= p


def dropped(x: Tensor, p: float = P, seed: int = 7) -> tuple[Tensor, Tensor]:
    torch.musa.manual_seed(seed)
    return torch.native_dropout(x, p, True)


def test_reference_gives_the_published_answers():
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
        0xD16CFE09,
        0x94FDCCEB,
        0x5001E420,
        0x24126EA1,
    ]


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 3])
def test_a_seed_gives_the_numbers_of_philox(seed):
    x = torch.ones(5003, device="musa")
    first = dropped(x, seed=seed)[1]
    second = torch.native_dropout(x, P, True)[1]
    assert torch.equal(first.cpu(), expected_mask(5003, P, seed))
    # a call takes one block of each subsequence
    assert torch.equal(second.cpu(), expected_mask(5003, P, seed, offset=4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_kept_does_not_depend_on_how_much_there_is(dtype):
    whole = dropped(torch.ones(max(SIZES), device="musa", dtype=dtype))[1]
    for size in SIZES:
        x = torch.randn(size, dtype=dtype)
        out, mask = dropped(x.to("musa"))
        assert torch.equal(mask, whole[:size])
        torch.testing.assert_close(out.cpu(), x * mask.cpu() * (1 / (1 - P)), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", range(1, 9))
def test_operands_may_begin_anywhere_in_memory(dtype, start):
    x, gradient = torch.randn(1009, dtype=dtype), torch.randn(1009, dtype=dtype)
    kept = torch.rand(1009) > P
    out, mask = dropped(x.to("musa")[start:])
    assert torch.equal(mask, dropped(x.to("musa")[start:].clone())[1])
    assert torch.equal(out.cpu(), x[start:] * mask.cpu() * (1 / (1 - P)))
    for shifted in (kept.to("musa")[start:], kept[start:].to("musa")):
        ours = torch.ops.aten.native_dropout_backward(gradient.to("musa")[start:], shifted, 1.7)
        assert torch.equal(ours.cpu(), gradient[start:] * kept[start:] * 1.7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_is_masked_and_scaled(dtype):
    for size in SIZES:
        gradient, kept = torch.randn(size, dtype=dtype), torch.rand(size) > P
        ours = torch.ops.aten.native_dropout_backward(gradient.to("musa"), kept.to("musa"), 1 / (1 - P))
        assert torch.equal(ours.cpu(), gradient * kept * (1 / (1 - P)))


def test_what_is_dropped_is_multiplied_by_zero():
    x = torch.tensor([float("inf"), float("nan"), -1.0]).repeat_interleave(64)
    out, mask = dropped(x.to("musa"))
    expected = x * mask.cpu() * (1 / (1 - P))
    torch.testing.assert_close(out.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(out.cpu().signbit()[128:], expected.signbit()[128:])


def test_more_elements_than_a_gpu_has_threads():
    count = 5_000_011
    out, mask = dropped(torch.ones(count, device="musa", dtype=torch.bfloat16), p=0.5)
    assert torch.equal(out, mask * 2)
    assert abs(mask.double().mean().item() - 0.5) < 5 * 0.5 / count**0.5
    # far into it, by the definition
    tail = [philox([0, 0, group, 0], [7, 0]) for group in range(count // 4 - 50, count // 4)]
    kept = torch.tensor(tail, dtype=torch.int64).flatten() >= 2**31
    assert torch.equal(mask[4 * (count // 4 - 50) : 4 * (count // 4)].cpu(), kept)


def test_a_graph_draws_what_an_eager_call_draws():
    x = torch.ones(1003, device="musa")
    torch.native_dropout(x, P, True)
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        _, mask = torch.native_dropout(x, P, True)
    torch.musa.manual_seed(11)
    for offset in (0, 4):
        graph.replay()
        assert torch.equal(mask.cpu(), expected_mask(1003, P, 11, offset))


LAYOUTS = {
    "channels_last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "transposed": lambda: torch.randn(6, 4).t(),
    "permuted": lambda: torch.randn(2, 3, 4).permute(2, 0, 1),
    "a part": lambda: torch.randn(6, 8)[::2, 1::3],
    "a transposed part": lambda: torch.randn(6, 8)[::2, 1::3].t(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_as_a_tensor_without_memory_says(layout):
    x = LAYOUTS[layout]()
    memory = torch.empty(0).set_(x.untyped_storage()).to("musa")
    there = memory.as_strided(x.shape, x.stride(), x.storage_offset())
    with FakeTensorMode() as mode:
        fake = [t.stride() for t in torch.native_dropout(mode.from_tensor(there), P, True)]
    out, mask = dropped(there)
    assert [out.stride(), mask.stride()] == fake
    assert torch.equal(out.cpu(), x * mask.cpu() * (1 / (1 - P)))
    # The gradient may lie otherwise than the mask.
    for gradient in (torch.randn(x.shape), torch.empty_like(x).copy_(torch.randn(x.shape))):
        ours = torch.ops.aten.native_dropout_backward(gradient.to("musa"), mask, 1.7)
        assert torch.equal(ours.cpu(), gradient * mask.cpu() * 1.7)
