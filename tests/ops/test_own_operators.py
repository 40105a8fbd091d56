"""Operators that PyTorch lacks (torch.ops.musa): against plain PyTorch on the CPU, with shapes and gradients."""

from __future__ import annotations

import pytest
import torch

from opgen.testing import check_overload
from opgen.testing.domains.own import swiglu


def test_swiglu_agrees_with_plain_pytorch(device: str) -> None:
    check_overload("musa::swiglu", device=device, count=60)


@pytest.mark.parametrize("shape", [(6,), (0, 4), (2, 3, 8)])
def test_swiglu_gradient(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    ours, plain = x.to("musa").requires_grad_(), x.clone().requires_grad_()
    ours_out, plain_out = torch.ops.musa.swiglu(ours), swiglu(plain)
    (ours_grad,) = torch.autograd.grad(ours_out.sin().sum(), ours)
    (plain_grad,) = torch.autograd.grad(plain_out.sin().sum(), plain)
    torch.testing.assert_close(ours_grad.cpu(), plain_grad)


def test_swiglu_first_and_second_derivatives_against_differences() -> None:
    x = torch.randn(2, 4, dtype=torch.float64, device="musa", requires_grad=True)
    assert torch.autograd.gradcheck(torch.ops.musa.swiglu, (x,))
    assert torch.autograd.gradgradcheck(torch.ops.musa.swiglu, (x,))


def test_swiglu_shape_without_data() -> None:
    out = torch.ops.musa.swiglu(torch.empty(3, 10, device="meta", dtype=torch.bfloat16))
    assert out.shape == (3, 5) and out.dtype == torch.bfloat16 and out.device.type == "meta"


@pytest.mark.parametrize("device", ["musa", "meta"])
def test_swiglu_refuses_what_has_no_halves(device: str) -> None:
    for shape in ((), (3,), (4, 5)):
        with pytest.raises(RuntimeError, match="even last dimension"):
            torch.ops.musa.swiglu(torch.empty(shape, device=device))


def test_swiglu_leaves_the_device_only_where_told() -> None:
    before = torch.musa.fallback_counts()
    torch.ops.musa.swiglu(torch.randn(4, 4, device="musa", requires_grad=True)).sum().backward()
    assert torch.musa.fallback_counts() == before


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("shape", [(3, 4), (0, 2), (2, 3, 8)])
def test_swiglu_passes_opcheck(shape: tuple[int, ...], requires_grad: bool) -> None:
    x = torch.randn(shape, device="musa", requires_grad=requires_grad)
    # The check of the autograd key is not implemented for devices other than CPU, CUDA and XPU when a gradient is
    # wanted; the gradient itself is checked above.
    utils = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    utils += [] if requires_grad else ["test_autograd_registration"]
    results = torch.library.opcheck(torch.ops.musa.swiglu.default, (x,), test_utils=utils)
    assert set(results.values()) == {"SUCCESS"}


def test_swiglu_compiles_with_its_gradient_for_every_size() -> None:
    graphs = []

    def count(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    function = torch.compile(lambda x: torch.ops.musa.swiglu(x).sin(), backend=count, fullgraph=True, dynamic=True)
    traced = torch.compile(lambda x: torch.ops.musa.swiglu(x).sin(), backend="aot_eager", fullgraph=True, dynamic=True)
    for shape in ((3, 4), (5, 8)):
        x = torch.randn(shape, device="musa")
        expected = swiglu(x.cpu()).sin()
        torch.testing.assert_close(function(x).cpu(), expected)
        leaf, plain = x.clone().requires_grad_(), x.cpu().requires_grad_()
        traced(leaf).sum().backward()
        swiglu(plain).sin().sum().backward()
        assert leaf.grad is not None and plain.grad is not None
        torch.testing.assert_close(leaf.grad.cpu(), plain.grad)
    assert len(graphs) == 1, "one graph serves every size"


def test_swiglu_as_a_fake_tensor_and_functionalized() -> None:
    with torch._subclasses.FakeTensorMode():
        fake = torch.ops.musa.swiglu(torch.empty(2, 6, device="musa", dtype=torch.bfloat16))
        assert fake.shape == (2, 3) and fake.device.type == "musa" and fake.dtype == torch.bfloat16
    x = torch.randn(2, 4, device="musa")
    ours = torch.func.functionalize(lambda x: torch.ops.musa.swiglu(x).mul_(2))(x)
    torch.testing.assert_close(ours, torch.ops.musa.swiglu(x) * 2)
