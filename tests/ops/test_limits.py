"""Op code survives every limit of muDNN: one test per row of sdk/mudnn/limits.def (docs/limits.md lists them).

Each calls an operator in the way that would run into the limit if the kernel did not go round it. What a chip has not
is refused with a clear error, and the next call works. Rows that bind other chips run in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import torch
import torch.nn.functional as F

Tensors = tuple[torch.Tensor, ...]


def agrees(op: Callable[..., torch.Tensor], *arguments: torch.Tensor, tolerance: float = 1e-5) -> None:
    """The operator gives on the device what it gives on the CPU; layouts go along."""
    on_device = [_moved(argument) for argument in arguments]
    expected = op(*arguments)
    torch.testing.assert_close(op(*on_device).cpu(), expected, rtol=tolerance, atol=tolerance)


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """On the device with the very strides it has here, those of size-1 dimensions and broadcasts included."""
    flat = torch.empty(tensor.untyped_storage().nbytes() // tensor.element_size(), dtype=tensor.dtype)
    flat.set_(tensor.untyped_storage(), 0, flat.shape)
    return flat.to("musa").as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def in_process(script: str, **environment: str) -> None:
    """Runs the script where MUSA_ARCH and its like are read anew."""
    prelude = "import torch\nfrom torch.nn import functional as F\n"
    environment.setdefault("MUDNN_LOG_LEVEL", "FATAL")
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


REFUSED = """
def refused(call):
    try:
        call()
    except RuntimeError as error:
        assert "NOT_SUPPORTED" in str(error) or "not implemented" in str(error), str(error)
    else:
        raise AssertionError("not refused")
    assert torch.equal((torch.ones(3, device="musa") + 1).cpu(), torch.full((3,), 2.0))
"""


# ---- all classes


def test_rank_0() -> None:
    agrees(torch.add, torch.tensor(2.0), torch.tensor(3.0))
    agrees(torch.exp, torch.tensor(2.0))
    agrees(torch.sum, torch.tensor(2.0))
    agrees(torch.add, torch.rand([2] * 9), torch.rand([2] * 9).permute(8, 7, 6, 5, 4, 3, 2, 1, 0))


def test_zero_elements() -> None:
    agrees(torch.add, torch.rand(0, 3), torch.rand(3))
    agrees(torch.sum, torch.rand(0, 3))
    agrees(torch.mm, torch.rand(3, 0), torch.rand(0, 4))
    agrees(lambda t: torch.softmax(t, 1), torch.rand(0, 3))


def test_double_precision() -> None:
    in_process(
        REFUSED + "wide = torch.ones(3, dtype=torch.double).to('musa')\nrefused(lambda: wide + wide)",
        TORCH_MUSA_HOST_FP64="0",
    )


def test_complex_types() -> None:
    agrees(torch.mul, torch.rand(4, dtype=torch.complex64), torch.rand(4, dtype=torch.complex64))


def test_tf32_default() -> None:
    a, b = torch.rand(32, 32), torch.rand(32, 32)
    agrees(torch.mm, a, b, tolerance=1e-6)
    backend = torch.backends.mudnn
    with backend.flags(allow_tf32=True):
        difference = (torch.mm(a.to("musa"), b.to("musa")).cpu() - a @ b).abs().max()
    assert 1e-4 < difference < 1e-1
    agrees(torch.mm, a, b, tolerance=1e-6)


def test_bfloat16() -> None:
    in_process(
        REFUSED
        + """
        brain = torch.ones(3, dtype=torch.bfloat16).to("musa")
        refused(lambda: brain + brain)
        half = torch.ones(3, dtype=torch.half).to("musa")
        assert torch.equal((half + half).cpu(), torch.full((3,), 2.0, dtype=torch.half))
        """.replace("\n        ", "\n"),
        MUSA_ARCH="mp_21",
    )


def test_fp8() -> None:
    # Converting is a kernel of our own; muDNN has the type from 3.1 on.
    in_process(
        """
        x = torch.linspace(-3, 3, 13)
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            assert torch.equal(x.to("musa").to(dtype).float().cpu(), x.to(dtype).float())
        """,
        MUSA_ARCH="mp_22",
    )


# ---- elementwise


def test_unary_bool_arithmetic() -> None:
    flags = torch.tensor([True, False, True])
    agrees(lambda t: t + True, flags)
    agrees(lambda t: t * True, flags)
    agrees(torch.logical_not, flags)


def test_binary_bool_arithmetic() -> None:
    a, b = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    for op in (torch.add, torch.mul, torch.maximum, torch.eq, torch.lt, torch.logical_and, torch.bitwise_xor):
        agrees(op, a, b)


def test_unary_unset_parameters() -> None:
    x = torch.linspace(-4, 4, 17)
    agrees(F.hardsigmoid, x)
    agrees(lambda t: torch.clamp(t, min=-1.0), x)
    agrees(lambda t: torch.clamp(t, max=1.0), x)


# ---- reductions


def test_reduce_prod_bool_to_int64() -> None:
    flags = torch.tensor([[True, True], [True, False]])
    agrees(torch.prod, flags)
    agrees(lambda t: torch.prod(t, 1), flags)


def test_reduce_add_uint8() -> None:
    agrees(torch.sum, torch.arange(200, dtype=torch.uint8))


def test_reduce_mul() -> None:
    agrees(torch.prod, torch.rand(5) + 0.5)


def test_reduce_broadcast_several_dims() -> None:
    agrees(torch.sum, torch.full((1, 1), 2.0).expand(3, 4))
    agrees(lambda t: t.mean((0, 1)), torch.full((1, 1), 2.0).expand(3, 4))


def test_reduce_broadcast_one_dim() -> None:
    agrees(lambda t: t.sum(0), torch.full((1, 1), 2.0).expand(3, 4))
    agrees(lambda t: t.amax(1), torch.full((1, 1), 2.0).expand(3, 4))


def test_softmax_contiguous() -> None:
    agrees(lambda t: torch.softmax(t, 0), torch.rand(3, 4).t())
    agrees(lambda t: torch.log_softmax(t, 1), torch.rand(3, 8)[:, ::2])


# ---- matrix products


def test_matmul_double() -> None:
    agrees(torch.mm, torch.rand(3, 4, dtype=torch.double), torch.rand(4, 5, dtype=torch.double))


def test_batch_matmul_double() -> None:
    agrees(torch.bmm, torch.rand(2, 3, 4, dtype=torch.double), torch.rand(2, 4, 5, dtype=torch.double))


def test_matmul_leading_dimension() -> None:
    row = torch.rand(4, 1).t()
    assert row.is_contiguous()
    assert row.stride() == (1, 1)
    agrees(torch.mm, row, torch.rand(4, 3))
    agrees(torch.mm, torch.rand(3, 1), torch.rand(1, 4))


def test_batch_matmul_leading_dimension() -> None:
    agrees(torch.bmm, torch.rand(2, 4, 1).transpose(1, 2), torch.rand(2, 4, 3))


def test_matmul_layout() -> None:
    agrees(torch.mm, torch.rand(4, 6)[:, :4], torch.rand(4, 4).t())
    agrees(torch.mm, torch.rand(8, 8)[::2, ::2], torch.rand(4, 4))


def test_batch_matmul_layout() -> None:
    agrees(torch.bmm, torch.rand(4, 2, 4).transpose(0, 1), torch.rand(2, 4, 4))


# ---- convolution


def test_convolution_2d_only() -> None:
    agrees(F.conv1d, torch.rand(2, 3, 8), torch.rand(4, 3, 3))


def test_convolution_fused_bias_with_groups() -> None:
    agrees(lambda x, w, b: F.conv2d(x, w, b, groups=2), torch.rand(2, 4, 5, 5), torch.rand(4, 2, 3, 3), torch.rand(4))


def test_convolution_recommended_algorithm() -> None:
    agrees(lambda x, w: F.conv2d(x, w, groups=4), torch.rand(2, 4, 5, 5), torch.rand(4, 1, 3, 3))


# ---- attention and losses


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def heads(width: int, dtype: torch.dtype = torch.float) -> Tensors:
    return tuple(torch.rand(2, 2, 5, width).to(dtype) for _ in range(3))


def test_flash_architecture() -> None:
    in_process(
        """
        q = torch.rand(2, 2, 5, 8)
        on_device = q.half().to("musa")
        result = F.scaled_dot_product_attention(on_device, on_device, on_device).cpu().float()
        torch.testing.assert_close(result, F.scaled_dot_product_attention(q, q, q), rtol=1e-2, atol=1e-2)
        """,
        MUSA_ARCH="mp_21",
    )


def test_flash_types() -> None:
    agrees(attention, *heads(8))
    agrees(attention, *heads(8, torch.half), tolerance=1e-2)


def test_flash_width() -> None:
    agrees(attention, *heads(256, torch.half), tolerance=1e-2)


def test_attention_double() -> None:
    agrees(attention, *heads(8, torch.double))


def test_cross_entropy_architecture() -> None:
    in_process(
        """
        x, target = torch.rand(4, 5), torch.tensor([0, 4, 2, 1])
        result = F.cross_entropy(x.to("musa"), target.to("musa"), label_smoothing=0.1).cpu()
        torch.testing.assert_close(result, F.cross_entropy(x, target, label_smoothing=0.1))
        """,
        MUSA_ARCH="mp_22",
    )


# ---- random numbers


def test_murand_normal_count() -> None:
    for count in (1, 7, 1001):
        values = torch.empty(count, device="musa").normal_(3.0, 0.0).cpu()
        assert torch.equal(values, torch.full((count,), 3.0))
        assert torch.randn(count, device="musa").cpu().isfinite().all()


def test_murand_long_long() -> None:
    values = torch.empty(4096, dtype=torch.int64, device="musa").random_().cpu()
    assert values.min() >= 0
    assert values.max() > 2**62  # all 63 bits take part
    wide = torch.randint(-(2**62), 2**62, (4096,), device="musa").cpu()
    assert wide.min() < -(2**60)
    assert wide.max() > 2**60


def test_murand_uniform_interval() -> None:
    # PyTorch's interval is [0, 1); half has so few values that its ends are met
    for dtype in (torch.float, torch.half):
        values = torch.empty(1 << 18, dtype=dtype, device="musa").uniform_().cpu()
        assert values.max() < 1
        assert values.min() >= 0


# ---- older chips (tests/ops/test_profiles.py runs a sample of all operators there)


def test_mp_21_trains_in_float_and_half() -> None:
    in_process(
        """
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(36, 10),
        )
        x, target = torch.rand(8, 1, 8, 8), torch.arange(8)
        def losses(device):
            import copy
            model = copy.deepcopy(net).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            values = []
            for _ in range(5):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x.to(device)), target.to(device))
                loss.backward()
                optimizer.step()
                values.append(loss.item())
            return torch.tensor(values)
        torch.testing.assert_close(losses("musa"), losses("cpu"), rtol=1e-4, atol=1e-4)
        half = torch.rand(4, 4).half()
        result = (half.to("musa") @ half.to("musa")).cpu()
        torch.testing.assert_close(result, half @ half, rtol=1e-2, atol=1e-2)
        """,
        MUSA_ARCH="mp_21",
        MUDNN_LOG_LEVEL="ERROR",
    )
