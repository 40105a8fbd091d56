"""Matrix products and convolutions, in float32 (IEEE, without TF32) and in the 16-bit types of the tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional as F

from side_by_side.cases import Case, Operands, Scale, agree, operator

# A sum of K products of numbers around one in bfloat16 is off by some 2^-8 of its terms' size.
_TOLERANCE = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def cases(scale: Scale) -> Iterator[Case]:
    yield from _matmul(scale)
    yield from _convolution(scale)


def _normal(device: str, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _matmul(scale: Scale) -> Iterator[Case]:
    largest = scale.side
    for dtype, side in (
        (torch.float32, largest // 8),
        (torch.float32, largest // 2),
        (torch.float16, largest // 2),
        (torch.bfloat16, largest // 8),
        (torch.bfloat16, largest // 2),
        (torch.bfloat16, largest),
    ):

        def operands(device: str, side: int = side, dtype: torch.dtype = dtype) -> Operands:
            return _normal(device, dtype, side, side), _normal(device, dtype, side, side)

        small = partial(operands, side=min(side, 256))
        yield Case(
            "matmul",
            f"mm, {side} x {side}, {_named(dtype)}",
            "TFLOP/s",
            operator(torch.mm, operands),
            "device",
            amount=2.0 * side**3,
            footprint=3.0 * side**2 * dtype.itemsize,
            check=agree(torch.mm, small, _TOLERANCE[dtype] * 10),
        )
    width, tokens, dtype = scale.width, scale.batch * scale.tokens, torch.bfloat16

    def linear(device: str, tokens: int = tokens) -> Operands:
        shapes = (tokens, width), (4 * width, width), (4 * width,)
        return tuple(_normal(device, dtype, *shape) for shape in shapes)

    yield Case(
        "matmul",
        f"linear with bias, {tokens} tokens, {width} to {4 * width}, bfloat16",
        "TFLOP/s",
        operator(F.linear, linear),
        "device",
        amount=2.0 * tokens * width * 4 * width,
        footprint=2.0 * (5 * tokens * width + 4 * width * width),
        check=agree(F.linear, partial(linear, tokens=16), _TOLERANCE[dtype] * 10),
    )
    heads, length, features = 8 * scale.batch, scale.tokens, 64

    def batches(device: str, heads: int = heads) -> Operands:
        return _normal(device, dtype, heads, length, features), _normal(device, dtype, heads, features, length)

    yield Case(
        "matmul",
        f"bmm, {heads} of {length} x {features} x {length}, bfloat16",
        "TFLOP/s",
        operator(torch.bmm, batches),
        "device",
        amount=2.0 * heads * length * length * features,
        footprint=2.0 * heads * (2 * length * features + length * length),
        check=agree(torch.bmm, partial(batches, heads=2), _TOLERANCE[dtype] * 10),
    )


@dataclass(frozen=True)
class Layer:
    """A convolution of ResNet-50, or like one: NCHW, square kernel and image, no bias."""

    inputs: int
    outputs: int
    image: int
    kernel: int
    stride: int = 1
    groups: int = 1

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def output(self) -> int:
        return (self.image + 2 * self.padding - self.kernel) // self.stride + 1

    def flops(self, batch: int) -> float:
        return 2.0 * batch * self.outputs * self.output**2 * self.inputs // self.groups * self.kernel**2

    def operands(self, device: str, batch: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        weight = _normal(device, dtype, self.outputs, self.inputs // self.groups, self.kernel, self.kernel)
        return _normal(device, dtype, batch, self.inputs, self.image, self.image), weight

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, weight, None, self.stride, self.padding, 1, self.groups)

    def backward(self, grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten.convolution_backward(
            grad,
            x,
            weight,
            None,
            [self.stride] * 2,
            [self.padding] * 2,
            [1, 1],
            False,
            [0, 0],
            self.groups,
            [True, True, False],
        )

    def __str__(self) -> str:
        depthwise = ", depthwise" if self.groups > 1 else ""
        by = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.kernel} x {self.kernel}{by}, {self.inputs} to {self.outputs}, {self.image}²{depthwise}"


def _convolution(scale: Scale) -> Iterator[Case]:
    width, image, batch = scale.width // 8, scale.image, scale.batch
    stem = Layer(3, width, image, 7, 2)
    early = Layer(width, width, image // 4, 3)
    late = Layer(4 * width, 4 * width, image // 16, 3)
    pointwise = Layer(16 * width, 4 * width, image // 16, 1)
    depthwise = Layer(2 * width, 2 * width, image // 4, 3, 1, 2 * width)
    for layer, dtypes in (
        (stem, (torch.float32, torch.bfloat16)),
        (early, (torch.float32, torch.bfloat16)),
        (late, (torch.float32, torch.bfloat16)),
        (pointwise, (torch.float32, torch.bfloat16)),
        (depthwise, (torch.float32,)),
    ):
        for dtype in dtypes:
            operands = partial(layer.operands, batch=batch, dtype=dtype)
            moved = batch * (layer.inputs * layer.image**2 + layer.outputs * layer.output**2) * dtype.itemsize
            yield Case(
                "convolution",
                f"{layer}, {_named(dtype)}",
                "TFLOP/s",
                operator(layer.forward, operands),
                "device",
                amount=layer.flops(batch),
                footprint=moved,
                check=agree(layer.forward, partial(layer.operands, batch=1, dtype=dtype), _TOLERANCE[dtype] * 4),
            )
    for layer, dtype in ((early, torch.float32), (early, torch.bfloat16), (late, torch.bfloat16)):

        def gradients(
            device: str, layer: Layer = layer, dtype: torch.dtype = dtype, batch: int = batch
        ) -> tuple[torch.Tensor, ...]:
            grad = _normal(device, dtype, batch, layer.outputs, layer.output, layer.output)
            return grad, *layer.operands(device, batch, dtype)

        yield Case(
            "convolution",
            f"{layer}, {_named(dtype)}, backward",
            "TFLOP/s",
            operator(layer.backward, gradients),
            "device",
            amount=2 * layer.flops(batch),
            footprint=2.0 * batch * (layer.inputs * layer.image**2 + layer.outputs * layer.output**2) * dtype.itemsize,
            check=agree(layer.backward, partial(gradients, batch=1), _TOLERANCE[dtype] * 10, 2),
        )
