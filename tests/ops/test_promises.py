"""Promises that no comparison of results can show."""

from __future__ import annotations

import pytest
import torch


def test_resizing_an_out_tensor_that_holds_elements_warns(device: str) -> None:
    x = torch.ones(3, device=device)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.exp(x, out=torch.empty(2, device=device))


def test_resizing_an_empty_out_tensor_is_silent(device: str, recwarn: pytest.WarningsRecorder) -> None:
    out = torch.empty(0, device=device)
    torch.exp(torch.zeros(3, device=device), out=out)
    assert out.tolist() == [1.0, 1.0, 1.0]
    assert not recwarn.list


def test_out_tensor_on_another_device_is_refused(device: str) -> None:
    if device == "cpu":
        pytest.skip("needs a device that is not the CPU")
    with pytest.raises(RuntimeError):
        torch.exp(torch.ones(3, device=device), out=torch.empty(3))


def test_operands_on_two_devices_are_refused_and_the_device_stays_usable(device: str) -> None:
    if device == "cpu":
        pytest.skip("needs a device that is not the CPU")
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="same device"):
        torch.mm(torch.ones(3, 3), torch.ones(3, 3, device=device))
    assert (x + 1).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_gradient_of_dropout_follows_its_mask(p: float, device: str) -> None:
    x = torch.ones(64, 64, device=device, requires_grad=True)
    y = torch.nn.functional.dropout(x, p)
    y.sum().backward()
    # of ones the output is the scaled mask itself
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert 0.6 * p < float((y == 0).float().mean()) < 1.4 * p


def test_random_stream_continues_and_restarts(device: str) -> None:
    def two() -> list[list[float]]:
        return [torch.rand(8, device=device).tolist() for _ in range(2)]

    torch.manual_seed(5)
    first, second = two()
    torch.manual_seed(5)
    assert two() == [first, second]
    assert first != second


def test_generator_state_can_be_put_back(device: str) -> None:
    generator = torch.Generator(device=device).manual_seed(11)
    torch.rand(5, device=device, generator=generator)
    state = generator.get_state()
    wanted = torch.randn(7, device=device, generator=generator).tolist()
    generator.set_state(state)
    assert torch.randn(7, device=device, generator=generator).tolist() == wanted


def test_memory_recorded_on_a_stream_is_not_reused_before_the_stream_is_done(device: str) -> None:
    if device == "cpu":
        pytest.skip("the CPU has no streams")
    module = getattr(torch, device)
    stream = module.Stream()
    source = torch.full((1 << 16,), 3.0, device=device)
    module.synchronize()
    with module.stream(stream):
        result = source.clone()
        for _ in range(20):
            result = result + source
    source.record_stream(stream)
    del source
    # were the block free, this would be it
    torch.full((1 << 16,), -1.0, device=device)
    stream.synchronize()
    assert float(result[0]) == 63.0 and float(result[-1]) == 63.0


@pytest.mark.parametrize("layout", ["transposed", "expanded", "gaps"])
def test_group_norm_takes_an_input_of_any_layout(layout: str, device: str) -> None:
    """Not every release's CPU kernel does, so the reference is computed from a dense copy."""
    dense = torch.randn(3, 8, 6)
    x = {
        "transposed": dense.to(device).transpose(1, 2).contiguous().transpose(1, 2),
        "expanded": dense[:, :, :1].to(device).expand(3, 8, 6),
        "gaps": torch.stack([dense, dense], -1).to(device)[..., 0],
    }[layout]
    ours = torch.ops.aten.native_group_norm(x, None, None, 3, 8, 6, 4, 1e-5)
    plain = torch.ops.aten.native_group_norm(x.cpu().contiguous(), None, None, 3, 8, 6, 4, 1e-5)
    for got, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(got.cpu(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["add", "sub"])
def test_a_sum_of_floats_of_two_widths_rounds_as_the_cpus(name: str, narrow: torch.dtype, device: str) -> None:
    torch.manual_seed(0)
    wide, thin = torch.randn(33, 1, 40), torch.randn(5, 40).to(narrow)
    function = getattr(torch, name)
    layouts = [
        (wide, thin),
        (thin, wide.transpose(0, 2).contiguous().transpose(0, 2)),
        (wide[::2, :, 1::3], thin[:, ::3][:, :13]),
        (wide[:0], thin),
        (thin[0, 0], wide),  # a number of its own dtype: the tensor of more dimensions decides
        (wide, torch.tensor(0.1, dtype=narrow)),  # stays on the CPU
    ]
    for a, b in layouts:
        there = [x.to(device) if x.device == a.device and x.dim() else x for x in (a, b)]
        got = function(*there, alpha=0.7)
        torch.testing.assert_close(got.cpu(), function(a, b, alpha=0.7))
    # Into memory of either width, and on itself.
    for out in (torch.empty(33, 5, 40), torch.empty(33, 5, 40, dtype=narrow)):
        got = function(wide.to(device), thin.to(device), out=out.to(device))
        torch.testing.assert_close(got.cpu(), function(wide, thin, out=out))
    grown = thin.to(device)
    getattr(grown, f"{name}_")(wide[0].to(device))
    torch.testing.assert_close(grown.cpu(), getattr(thin.clone(), f"{name}_")(wide[0]))
