"""Training steps of two models, with the sizes that their papers give.

ResNet-50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition" (2015), table 1. SGD as in section 3.4.
Transformer: Vaswani et al., "Attention Is All You Need" (2017), table 3, line "base", the encoder's six layers. Adam as
in section 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from side_by_side.cases import Case, Disagreement, Scale
from side_by_side.measure import Call, Pair

EXPANSION = 4
CLASSES = 1000


class Bottleneck(nn.Module):
    """1 x 1 to `width` features, 3 x 3, 1 x 1 to four times as many, and the way around; (N, C, H, W)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = EXPANSION * width
        self.body = nn.Sequential(
            *_normed(inputs, width, 1, stride),
            nn.ReLU(inplace=True),
            *_normed(width, width, 3),
            nn.ReLU(inplace=True),
            *_normed(width, outputs, 1),
        )
        same = stride == 1 and inputs == outputs
        self.around = nn.Identity() if same else nn.Sequential(*_normed(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.around(x), inplace=True)


def _normed(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution, nn.BatchNorm2d(outputs)


def resnet(stages: Sequence[int], width: int = 64, classes: int = CLASSES) -> nn.Module:
    """Images (N, 3, H, W) to scores (N, classes); stages of (3, 4, 6, 3) make ResNet-50, 25,557,032 parameters."""
    layers: list[nn.Module] = [*_normed(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, blocks in enumerate(stages):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width << stage, 2 if block == 0 and stage > 0 else 1))
            inputs = EXPANSION * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Transformer(nn.Module):
    """Tokens (N, L) to scores (N, L, vocabulary): embedding and sines, encoder layers, a product with the embedding."""

    places: Tensor

    def __init__(self, vocabulary: int, width: int, length: int, layers: int, heads: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
        self.register_buffer("places", torch.stack((angles.sin(), angles.cos()), -1).flatten(1))
        layer = nn.TransformerEncoderLayer(width, heads, EXPANSION * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scale = math.sqrt(width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = F.dropout(self.embedding(tokens) * self.scale + self.places, 0.1, self.training)
        return F.linear(self.encoder(x), self.embedding.weight)


def training(
    make: Callable[[], tuple[nn.Module, Tensor, Tensor]],
    optimizer: Callable[..., torch.optim.Optimizer],
    dtype: torch.dtype | None,
    device: str,
) -> Call:
    """One step: gradients to none, forward, cross-entropy, backward, update; returns the loss.

    Weights and data are drawn on the CPU from one seed: they are the same everywhere. With a `dtype`, under autocast.
    """
    torch.manual_seed(0)
    model, data, target = make()
    model, data, target = model.to(device), data.to(device), target.to(device)
    update = optimizer(model.parameters())

    def step() -> Tensor:
        update.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = F.cross_entropy(model(data).flatten(0, -2), target.flatten())
        loss.backward()
        update.step()
        return loss.detach()

    return step


def _same_loss(_pair: Pair, calls: Sequence[Call]) -> None:
    """The first losses, as numbers or tensors of one.

    They differ by rounding and, with dropout, by the numbers that each device draws.
    """
    losses = [float(call()) for call in calls]  # type: ignore[arg-type]
    if not all(map(math.isfinite, losses)) or abs(losses[0] - losses[1]) > 0.05 * abs(losses[1]):
        raise Disagreement(f"the first losses are {losses[0]:.4f} and {losses[1]:.4f}")


def _layers(number: int) -> str:
    return f"{number} layer{'s' if number > 1 else ''}"


def cases(scale: Scale) -> Iterator[Case]:
    def images() -> tuple[nn.Module, Tensor, Tensor]:
        model = resnet(scale.stages, scale.width // 8)
        return model, torch.randn(scale.batch, 3, scale.image, scale.image), torch.randint(CLASSES, (scale.batch,))

    def sentences() -> tuple[nn.Module, Tensor, Tensor]:
        model = Transformer(scale.vocabulary, scale.width, scale.tokens, scale.layers)
        tokens = torch.randint(scale.vocabulary, (2, scale.batch, scale.tokens))
        return model, tokens[0], tokens[1]

    sgd = partial(torch.optim.SGD, lr=0.01, momentum=0.9, weight_decay=1e-4)
    adam = partial(torch.optim.Adam, lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    many = scale.batch * scale.tokens
    for dtype, how in ((None, "float32"), (torch.bfloat16, "autocast to bfloat16")):
        step = partial(training, images, sgd, dtype)
        name = f"ResNet-{3 * sum(scale.stages) + 2}, {scale.batch} images of {scale.image}², {how}"
        yield Case("training", name, "images/s", step, "steps", amount=scale.batch, check=_same_loss)
        step = partial(training, sentences, adam, dtype)
        name = f"Transformer, {_layers(scale.layers)}, {scale.batch} x {scale.tokens} tokens, {how}"
        yield Case("training", name, "tokens/s", step, "steps", amount=many, check=_same_loss)
