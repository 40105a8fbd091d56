"""torch.autocast("musa"): which dtype operators compute in, and training with a gradient scaler."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.fixture
def x():
    return torch.randn(4, 4, device="musa")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_compute_in_the_lower_precision(x, dtype):
    linear = nn.Linear(4, 4).to("musa")
    with torch.autocast("musa", dtype=dtype):
        assert (x @ x).dtype == dtype
        assert linear(x).dtype == dtype
        assert torch.baddbmm(x[None], x[None], x[None]).dtype == dtype
        assert (x + x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32
    assert linear.weight.dtype == torch.float32


def test_sensitive_operators_compute_in_float32(x):
    half = x.half()
    with torch.autocast("musa", dtype=torch.float16):
        assert half.exp().dtype == torch.float32
        assert half.sum().dtype == torch.float32
        assert torch.softmax(half, 0).dtype == torch.float32
        assert half.sum(dtype=torch.float16).dtype == torch.float16
        assert half.norm().dtype == torch.float32
        assert nn.functional.mse_loss(half, half).dtype == torch.float32


def test_mixed_operands_are_promoted(x):
    with torch.autocast("musa", dtype=torch.float16):
        assert torch.addcmul(x, x.half(), x.half()).dtype == torch.float32
        assert torch.cat([x.half(), x.half()]).dtype == torch.float16
        assert torch.stack([x, x.half()]).dtype == torch.float32


def test_double_and_integers_are_left_alone(x):
    with torch.autocast("musa", dtype=torch.float16):
        assert (x.double().exp()).dtype == torch.float64
        assert (torch.ones(2, dtype=torch.int64, device="musa") * 2).dtype == torch.int64


def test_nesting_and_switching_off(x):
    with torch.autocast("musa", dtype=torch.float16):
        with torch.autocast("musa", enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.float16
    with torch.musa.amp.autocast():
        assert (x @ x).dtype == torch.float16


def test_unsafe_loss_is_refused(x):
    probabilities = x.sigmoid()
    with torch.autocast("musa", dtype=torch.float16), pytest.raises(RuntimeError, match="unsafe to autocast"):
        nn.functional.binary_cross_entropy(probabilities, probabilities)


def test_unsupported_dtype_warns_and_switches_off(x):
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        context = torch.autocast("musa", dtype=torch.float64)
    with context:
        assert (x @ x).dtype == torch.float32


def test_training_with_a_gradient_scaler():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3)).to("musa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.musa.amp.GradScaler(init_scale=256.0)
    inputs, targets = torch.randn(6, 5, device="musa"), torch.randn(6, 3, device="musa")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with torch.musa.amp.autocast(dtype=torch.float16):
            outputs = model(inputs)
            assert outputs.dtype == torch.float16
            loss = nn.functional.mse_loss(outputs, targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert model[0].weight.dtype == torch.float32 and scaler.get_scale() == 256


def test_the_scaler_skips_steps_with_infinite_gradients():
    p = nn.Parameter(torch.ones(3, device="musa"))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = torch.amp.GradScaler("musa", init_scale=4.0)
    scaler.scale((p * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [1, 1, 1] and scaler.get_scale() == 2
