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


def packed(lengths: tuple[int, ...]) -> Callable[[Tensor], nn.utils.rnn.PackedSequence]:
    return lambda x: nn.utils.rnn.pack_padded_sequence(x, list(lengths), batch_first=True, enforce_sorted=False)


# layer, what it is given instead of a plain (sequence, batch, features) tensor
RECURRENT: dict[str, tuple[Callable[[], nn.Module], Callable[[Tensor], object]]] = {
    "lstm": (lambda: nn.LSTM(6, 5), lambda x: x),
    "lstm, two layers, both ways": (lambda: nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True), lambda x: x),
    "lstm without bias, projected": (lambda: nn.LSTM(6, 5, bias=False, proj_size=3), lambda x: x),
    "lstm over packed sequences": (lambda: nn.LSTM(6, 5, batch_first=True), packed((4, 1, 3))),
    "lstm without batch": (lambda: nn.LSTM(6, 5), lambda x: x[:, 0]),
    "gru": (lambda: nn.GRU(6, 5), lambda x: x),
    "gru, two layers, both ways": (lambda: nn.GRU(6, 5, 2, bidirectional=True, batch_first=True), lambda x: x),
    "gru without bias": (lambda: nn.GRU(6, 5, bias=False), lambda x: x),
    "gru over packed sequences": (lambda: nn.GRU(6, 5, batch_first=True), packed((2, 4, 4))),
    "lstm cell": (lambda: nn.LSTMCell(6, 5), lambda x: x[0]),
    "gru cell": (lambda: nn.GRUCell(6, 5), lambda x: x[0]),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_train_as_on_the_cpu(name: str, device: str) -> None:
    make, given = RECURRENT[name]
    torch.manual_seed(0)
    reference = make()
    layer = copy.deepcopy(reference).to(device)
    x = torch.randn(3, 4, 6)
    before = fallback_counts(device)
    for model, where in ((reference, "cpu"), (layer, device)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = sum(tensor.square().sum() for tensor in tensors_of(model(given(x.to(where)))))
            loss.backward()
            optimizer.step()
    for (path, wanted), got in zip(reference.named_parameters(), layer.parameters(), strict=True):
        torch.testing.assert_close(
            got.detach().cpu(), wanted.detach(), rtol=1e-4, atol=1e-5, msg=f"{path}: {{}}".format
        )
    if device != "cpu":
        assert fallback_counts(device) == before


def tensors_of(value: object) -> list[Tensor]:
    """The tensors in whatever a recurrent layer returns."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return [value.data]
    return [tensor for item in value for tensor in tensors_of(item)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell])
def test_recurrent_cells_have_second_derivatives(cell: type[nn.Module], device: str) -> None:
    torch.manual_seed(0)
    reference = cell(3, 2)
    results = []
    for where in ("cpu", device):
        model = copy.deepcopy(reference).to(where)
        x = torch.linspace(-1, 1, 6).reshape(2, 3).to(where).requires_grad_()
        out = tensors_of(model(x))[0].square().sum()
        (first,) = torch.autograd.grad(out, x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        results.append(second.cpu())
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


def test_rrelu_draws_slopes_in_training_only(device: str) -> None:
    x = torch.linspace(-2, 2, 1000, device=device)
    mean_slope = nn.functional.rrelu(x, 0.1, 0.3, training=False)
    torch.testing.assert_close(mean_slope.cpu(), nn.functional.leaky_relu(x.cpu(), 0.2))
    leaf = x.clone().requires_grad_()
    drawn = nn.functional.rrelu(leaf, 0.1, 0.3, training=True)
    slopes = (drawn.detach() / x).cpu()
    assert bool((slopes[500:] == 1).all())
    assert bool(((slopes[:500] > 0.1 - 1e-6) & (slopes[:500] < 0.3 + 1e-6)).all())
    assert slopes[:500].unique().numel() > 100
    (gradient,) = torch.autograd.grad(drawn.sum(), leaf)
    torch.testing.assert_close(gradient.cpu(), slopes)


def test_rrelu_writes_into_out_of_any_size_and_layout(device: str) -> None:
    x = torch.linspace(-2, 2, 12, device=device).reshape(3, 4)
    noise = torch.zeros_like(x)
    for out in (torch.empty(0, device=device), torch.empty(4, 3, device=device).t()):
        written = torch.ops.aten.rrelu_with_noise.out(x, noise, 0.25, 0.25, True, None, out=out)
        assert written is out
        torch.testing.assert_close(out.cpu(), nn.functional.leaky_relu(x.cpu(), 0.25))
        torch.testing.assert_close(noise.cpu(), torch.where(x.cpu() <= 0, 0.25, 1.0))
