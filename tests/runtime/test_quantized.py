"""Quantized tensors on the device: made, read, copied and turned back, with the integers that the CPU computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

# PyTorch announces the end of these dtypes; as long as it has them, so does the device
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated.*:UserWarning")

DTYPES = (torch.qint8, torch.quint8, torch.qint32)
VALUES = torch.tensor([[-1e9, -3.25, -0.5, 0.0], [0.49, 0.5, 1.5, 2.5], [7.77, 100.0, 1e9, float("inf")]])
# free of ties (the CPU rounds them before or after adding the zero point, by dtype and scheme) and of what overflows
TAME = VALUES.clamp(-1e6, 1e6) * 0.97
SCALES, ZEROS = torch.tensor([0.5, 0.1, 2.0], dtype=torch.float64), torch.tensor([3, 0, 100])


def agree(ours: Tensor, expected: Tensor) -> None:
    assert ours.device.type == "musa" and ours.is_quantized and ours.qscheme() == expected.qscheme()
    assert ours.dtype == expected.dtype
    assert torch.equal(ours.int_repr().cpu(), expected.int_repr())
    torch.testing.assert_close(ours.dequantize().cpu(), expected.dequantize())


def per_tensor(device: str, dtype: torch.dtype = torch.qint8, values: Tensor | None = None) -> Tensor:
    values = values if values is not None else TAME if dtype == torch.qint32 else VALUES
    return torch.quantize_per_tensor(values.to(device), 0.25, 5, dtype)


def per_channel(device: str, dtype: torch.dtype = torch.qint8, zeros: Tensor = ZEROS) -> Tensor:
    scales = SCALES if zeros.dtype == torch.int64 else SCALES.float()
    return torch.quantize_per_channel(TAME.to(device), scales.to(device), zeros.to(device), 0, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quantize_per_tensor(dtype: torch.dtype) -> None:
    ours = per_tensor("musa", dtype)
    assert torch._C._dispatch_keys(ours).has(torch._C.DispatchKey.QuantizedPrivateUse1)
    agree(ours, per_tensor("cpu", dtype))
    assert (ours.q_scale(), ours.q_zero_point()) == (0.25, 5)
    assert "musa" in repr(ours) and "quantization_scheme" in repr(ours)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("zeros", [ZEROS, torch.tensor([0.5, -1.25, 3.0])], ids=["affine", "float_qparams"])
def test_quantize_per_channel(dtype: torch.dtype, zeros: Tensor) -> None:
    if zeros.is_floating_point() and dtype == torch.qint32:
        pytest.skip("PyTorch's own kernel for the CPU ends the process with an illegal instruction")
    ours, expected = per_channel("musa", dtype, zeros), per_channel("cpu", dtype, zeros)
    agree(ours, expected)
    assert ours.q_per_channel_axis() == 0
    assert torch.equal(ours.q_per_channel_scales().cpu(), expected.q_per_channel_scales())
    assert torch.equal(ours.q_per_channel_zero_points().cpu(), expected.q_per_channel_zero_points())


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4, 5)])
def test_shapes_and_layouts(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape)
    agree(per_tensor("musa", values=values), per_tensor("cpu", values=values))
    if len(shape) == 4:
        values = values.to(memory_format=torch.channels_last)
        ours = per_tensor("musa", values=values)
        agree(ours, per_tensor("cpu", values=values))
        assert ours.is_contiguous(memory_format=torch.channels_last)


def test_between_devices() -> None:
    for quantized in (per_tensor("cpu"), per_channel("cpu")):
        ours = quantized.to("musa")
        agree(ours, quantized)
        back = ours.cpu()
        assert back.qscheme() == quantized.qscheme() and torch.equal(back.int_repr(), quantized.int_repr())


def test_copies_within_the_device() -> None:
    ours, expected = per_tensor("musa"), per_tensor("cpu")
    agree(ours.clone(), expected)
    agree(ours.t().contiguous(), expected.t().contiguous())
    target = torch._empty_affine_quantized([3, 4], scale=9.0, zero_point=1, dtype=torch.qint8, device="musa")
    agree(target.copy_(ours), expected)
    # a float source is quantized as the destination says
    finite = torch.randn(3, 4)
    agree(target.copy_(finite.to("musa")), expected.clone().copy_(finite))
    with pytest.raises(RuntimeError, match="please use dequantize"):
        torch.empty(3, 4, device="musa").copy_(ours)
    with pytest.raises(RuntimeError, match="one dtype"):
        target.copy_(per_tensor("musa", torch.quint8))


def test_views_share_the_integers() -> None:
    ours, expected = per_tensor("musa"), per_tensor("cpu")
    for view in (
        lambda x: x.view(4, 3),
        lambda x: x[1],
        lambda x: x.t(),
        lambda x: x.unsqueeze(0),
        lambda x: x.flip(0),
    ):
        agree(view(ours), view(expected))
    ours[1].fill_(2.0)
    expected[1].fill_(2.0)
    agree(ours, expected)


def test_quantized_tensors_from_integers() -> None:
    integers = torch.tensor([[-128, 0], [5, 127]], dtype=torch.int8)
    agree(
        torch._make_per_tensor_quantized_tensor(integers.to("musa"), 0.5, 2),
        torch._make_per_tensor_quantized_tensor(integers, 0.5, 2),
    )
    parameters = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([0, 3])
    agree(
        torch._make_per_channel_quantized_tensor(integers.to("musa"), *(p.to("musa") for p in parameters), 1),
        torch._make_per_channel_quantized_tensor(integers, *parameters, 1),
    )


def test_quantize_refuses_what_the_cpu_refuses() -> None:
    for device in ("cpu", "musa"):
        with pytest.raises(RuntimeError, match="Float Tensor"):
            torch.quantize_per_tensor(VALUES.double().to(device), 0.1, 0, torch.qint8)
        with pytest.raises(RuntimeError, match="above upper bound"):
            torch.quantize_per_tensor(VALUES.to(device), 0.1, 1000, torch.qint8)


def test_dequantize_of_a_dense_tensor_is_its_float() -> None:
    assert torch.ones(2, dtype=torch.float16, device="musa").dequantize().dtype == torch.float32


def test_quantize_with_parameters_that_are_tensors_or_found() -> None:
    def quantized(device: str) -> list[Tensor]:
        x = torch.linspace(-3, 5, 7, device=device)
        scale, zero = torch.tensor(0.3, device=device), torch.tensor(2, device=device)
        scales, zeros = torch.tensor([0.3, 0.7], device=device), torch.tensor([2, 0], device=device)
        return [
            torch.quantize_per_tensor(x, scale, zero, torch.quint8),
            *torch.quantize_per_tensor([x, x], scales, zeros, torch.qint8),
            torch.quantize_per_tensor_dynamic(x, torch.quint8, False),
        ]

    for ours, expected in zip(quantized("musa"), quantized("cpu"), strict=True):
        agree(ours, expected)
