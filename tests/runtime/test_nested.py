"""Nested tensors on the device (layout strided): made, read, copied, computed with, differentiated, as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")


def parts(rows: tuple[int, ...] = (2, 5, 1), width: int = 4, scale: float = 1) -> list[Tensor]:
    generator = torch.Generator().manual_seed(sum(rows))
    return [torch.randn(n, width, generator=generator) * scale for n in rows]


def nested(tensors: list[Tensor]) -> Tensor:
    return torch.nested.nested_tensor(tensors)


def agree(ours: Tensor, expected: Tensor) -> None:
    assert ours.device.type == "musa" and ours.is_nested == expected.is_nested
    if expected.is_nested:
        pairs = zip(ours.unbind(), expected.unbind(), strict=True)
        for our, their in pairs:
            torch.testing.assert_close(our.cpu(), their)
    else:
        torch.testing.assert_close(ours.cpu(), expected)


def both(function: Callable[..., Tensor], *operands: Tensor) -> None:
    before = torch.musa.fallback_counts()
    ours = function(*(operand.to("musa") for operand in operands))
    agree(ours, function(*operands))
    assert torch.musa.fallback_counts() == before, "it went through the CPU"


def test_made_on_the_device_and_read_there() -> None:
    tensors = parts()
    ours = torch.nested.nested_tensor(tensors, device="musa")
    assert torch._C._dispatch_keys(ours).has(torch._C.DispatchKey.NestedTensorPrivateUse1)
    assert ours.is_nested and ours.size(0) == 3 and ours.numel() == sum(t.numel() for t in tensors)
    agree(ours, nested(tensors))
    agree(torch.nested.as_nested_tensor([t.to("musa") for t in tensors]), nested(tensors))
    assert "nested_tensor" in repr(ours) and "musa" in repr(ours)


def test_between_devices_dtypes_and_memory() -> None:
    source = nested(parts())
    ours = source.to("musa")
    agree(ours, source)
    assert [torch.equal(a, b) for a, b in zip(ours.cpu().unbind(), source.unbind(), strict=True)] == [True] * 3
    both(lambda x: x.to(torch.float64), source)
    both(Tensor.clone, source)
    both(torch.ones_like, source)
    both(lambda x: torch.empty_like(x).copy_(x), source)
    both(lambda x: x.clone().fill_(3), source)
    both(lambda x: x.clone().zero_(), source)


def test_to_and_from_padded() -> None:
    source = nested(parts())
    both(lambda x: x.to_padded_tensor(-1.5), source)
    both(lambda x: torch.nested.to_padded_tensor(x, 0, (4, 6, 5)), source)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    both(torch._nested_tensor_from_mask, torch.randn(2, 3, 4), mask)


UNARY = [
    "abs", "cos", "neg", "relu", "sgn", "silu", "sin", "sqrt", "tanh", "gelu",
    "isinf", "isnan", "isneginf", "isposinf", "logical_not",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name: str) -> None:
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    source = nested([t.abs() for t in parts()]) if name == "sqrt" else nested(parts())
    both(function, source)
    if name in ("abs", "neg", "relu", "sgn", "tanh"):
        both(lambda x: getattr(x.clone(), f"{name}_")(), source)


def test_arithmetic() -> None:
    a, b = nested(parts()), nested(parts(scale=3))
    for function in (torch.add, torch.sub, torch.mul, torch.div):
        both(function, a, b)
    both(lambda x: x * 2, a)
    both(lambda x: x / 4, a)
    both(lambda x, y: x.clone().add_(y), a, b)
    both(lambda x, y: x.clone().mul_(y), a, b)
    both(lambda x: x >= 0, a)
    both(lambda x: x.sum(-1, keepdim=True), a)


def test_shapes() -> None:
    source = nested(parts())
    both(lambda x: x.transpose(1, 2), source)
    both(lambda x: x.unsqueeze(1), source)
    both(lambda x: x.reshape(3, -1, 2, 2), source)
    both(lambda x: x.select(0, 1), source)
    both(lambda x: torch.cat([x, x]), source)
    both(lambda x: x.chunk(2, -1)[1], source)
    both(lambda x: x.narrow(0, 1, 2), source)


def test_layers() -> None:
    source, weight, bias = nested(parts()), torch.randn(6, 4), torch.randn(6)
    both(torch.nn.functional.linear, source, weight, bias)
    both(lambda x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b), source, weight[0], weight[1])
    both(lambda x: x.softmax(-1), source)
    both(torch.nn.functional.embedding, torch.nested.nested_tensor([torch.tensor([1, 0]), torch.tensor([5])]), weight)
    both(lambda x: torch.bmm(x, x.transpose(1, 2)), source)
    both(torch.matmul, source, nested([t.t().contiguous() for t in parts()]))
    both(lambda x: torch.nn.functional.dropout(x, 0.5, training=False), source)


def test_gradients() -> None:
    def gradients(device: str) -> list[Tensor]:
        leaves = [t.to(device).requires_grad_() for t in (*parts(), torch.ones(3, 4), torch.zeros(3))]
        *tensors, weight, bias = leaves
        hidden = torch.nn.functional.linear(torch.nested.as_nested_tensor(tensors), weight, bias)
        hidden.relu().to_padded_tensor(0).sin().sum().backward()
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    ours, expected = gradients("musa"), gradients("cpu")
    assert len(ours) == len(expected) == 5
    for our, their in zip(ours, expected, strict=True):
        torch.testing.assert_close(our.cpu(), their)


def test_dropout_keeps_the_shape_and_about_half() -> None:
    ours = torch.nn.functional.dropout(nested([torch.ones(50, 40), torch.ones(7, 40)]).to("musa"), 0.5)
    kept = torch.cat([part.flatten() for part in ours.unbind()]).cpu()
    assert set(kept.tolist()) == {0.0, 2.0} and 0.4 < (kept > 0).float().mean() < 0.6


def test_what_python_builds_them_from() -> None:
    buffer, sizes = torch.arange(10.0), torch.tensor([[2, 2], [3, 2]])

    def made(device: str) -> Tensor:
        strides, offsets = torch._nested_compute_contiguous_strides_offsets(sizes)
        return torch._nested_view_from_buffer(buffer.to(device), sizes, strides, offsets)

    agree(made("musa"), made("cpu"))
    padded = torch.arange(12.0).reshape(2, 3, 2)
    both(lambda x: torch._nested_from_padded(x, sizes), padded)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    for each in (mask, ~mask):
        aligned = [torch._nested_tensor_from_mask_left_aligned(padded.to(d), each.to(d)) for d in ("musa", "cpu")]
        assert aligned[0] == aligned[1]
