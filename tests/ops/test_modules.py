"""Small networks: forward, backward and optimizer steps equal the CPU's, and no operator falls back."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from opgen.testing.run import fallback_counts

STEPS = 5


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 16), nn.Tanh(), nn.Dropout(0.0), nn.Linear(16, 5)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),  # batch norm takes it away again: its gradient is rounding noise
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 5),
    )


def words() -> nn.Module:
    return nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(48, 5), nn.Sigmoid(), nn.LogSoftmax(1))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "mlp": (mlp, lambda: torch.randn(16, 12)),
    "cnn": (cnn, lambda: torch.randn(16, 1, 8, 8)),
    "words": (words, lambda: torch.randint(20, (16, 6))),
}
OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.05),
    "sgd with momentum": lambda model: torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01
    ),
    "adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.01),
    "adamw with amsgrad": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True),
    "adam, tensor by tensor": lambda model: torch.optim.Adam(model.parameters(), lr=0.01, foreach=False),
}


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, target: Tensor
) -> tuple[list[float], dict[str, Tensor]]:
    """Losses of a few steps and the gradients of the last one."""
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}


def assert_close(name: str, actual: Tensor, expected: Tensor, atol: float) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=atol, msg=lambda text: f"{name}: {text}")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("network", NETWORKS)
def test_training_equals_cpu_without_fallback(network: str, optimizer: str, device: str) -> None:
    torch.manual_seed(0)
    make, data = NETWORKS[network]
    on_cpu, x, target = make(), data(), torch.randint(5, (16,))
    on_device = copy.deepcopy(on_cpu).to(device)
    before = fallback_counts(device)

    losses, gradients = train(on_device, OPTIMIZERS[optimizer](on_device), x.to(device), target.to(device))

    assert fallback_counts(device) == before
    expected_losses, expected_gradients = train(on_cpu, OPTIMIZERS[optimizer](on_cpu), x, target)
    # a few steps of float32 arithmetic in another order: 1e-4 is a thousand roundings
    torch.testing.assert_close(losses, expected_losses, rtol=1e-4, atol=1e-5)
    assert losses[-1] < losses[0]
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(
            gradients[name], gradient, rtol=1e-3, atol=1e-4, msg=lambda text, n=name: f"{n}: {text}"
        )
    for (name, wanted), got in zip(on_cpu.state_dict().items(), on_device.state_dict().values(), strict=True):
        # Adam divides by the root of a small second moment: where gradients are rounding noise, so are its steps
        assert_close(name, got.cpu(), wanted, atol=2e-3)


@pytest.mark.parametrize("network", NETWORKS)
def test_evaluation_equals_cpu(network: str, device: str) -> None:
    torch.manual_seed(1)
    make, data = NETWORKS[network]
    model, x = make().eval(), data()
    with torch.no_grad():
        expected = model(x)
        actual = model.to(device)(x.to(device))
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)
