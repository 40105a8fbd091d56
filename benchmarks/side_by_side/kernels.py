"""Kernels that move memory, over sizes. Their bytes: every input read once, every result written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional as F

from side_by_side.cases import Case, Operands, Scale, agree, operator

ROW = 1024
"""Elements of a row, where an operator works on rows."""
VECTOR = 64
"""Elements of a row that an index names."""
_CHECKED = 1 << 16

aten = torch.ops.aten


@dataclass(frozen=True)
class Kernel:
    group: str
    name: str
    op: Callable[..., object]
    operands: Callable[[int, str], Operands]
    """(elements, device)"""
    bytes: float
    """Of one element."""
    tolerance: float = 1e-4
    results: int = 1
    """How many of its results are compared."""


def flat(n: int, device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(n, device=device, dtype=dtype)


def rows(n: int, device: str, row: int = ROW) -> torch.Tensor:
    return torch.rand(n // row, row, device=device)


def square(n: int, device: str) -> torch.Tensor:
    side = 1 << (n.bit_length() - 1) // 2
    return torch.rand(n // side, side, device=device)


def numbers(n: int, below: int, device: str) -> torch.Tensor:
    return torch.randint(below, (n,), device=device)


def _condition(n: int, device: str) -> Operands:
    return flat(n, device) > 0.5, flat(n, device), flat(n, device)


def _halves(n: int, device: str) -> Operands:
    return flat(n, device, torch.bfloat16), flat(n, device, torch.bfloat16)


def _softmax_backward(n: int, device: str) -> Operands:
    return rows(n, device), rows(n, device).softmax(-1), -1, torch.float32


def _normed(n: int, device: str) -> Operands:
    return rows(n, device), [ROW], torch.ones(ROW, device=device), torch.zeros(ROW, device=device)


def _normed_backward(n: int, device: str) -> Operands:
    x, shape, weight, bias = _normed(n, device)
    mean = x.mean(-1, keepdim=True)
    rstd = (x.var(-1, keepdim=True, unbiased=False) + 1e-5).rsqrt()
    return rows(n, device), x, shape, mean, rstd, weight, bias, [True, True, True]


def _vectors(n: int, device: str) -> Operands:
    return rows(n, device, VECTOR), 0, numbers(n // VECTOR, n // VECTOR, device)


def _vectors_added(n: int, device: str) -> Operands:
    x, dim, index = _vectors(n, device)
    return torch.zeros(n // VECTOR, VECTOR, device=device), dim, index, x


def _gathered(n: int, device: str) -> Operands:
    return rows(n, device), 1, numbers(n, ROW, device).view(-1, ROW)


KERNELS = (
    Kernel("elementwise", "add", torch.add, lambda n, d: (flat(n, d), flat(n, d)), 12),
    Kernel("elementwise", "add, bfloat16", torch.add, _halves, 6, 1e-2),
    Kernel("elementwise", "mul by a number", lambda x: x * 1.5, lambda n, d: (flat(n, d),), 8),
    Kernel("elementwise", "exp", torch.exp, lambda n, d: (flat(n, d),), 8),
    Kernel("elementwise", "gelu", F.gelu, lambda n, d: (flat(n, d),), 8),
    Kernel("elementwise", "where", torch.where, _condition, 13),
    Kernel("elementwise", "add a row to each row", torch.add, lambda n, d: (rows(n, d), flat(ROW, d)), 8),
    Kernel("elementwise", "add, one transposed", lambda x, y: x + y.t(), lambda n, d: (square(n, d), square(n, d)), 12),
    Kernel("reduction", "sum", torch.sum, lambda n, d: (flat(n, d),), 4),
    Kernel("reduction", "sum of rows", lambda x: x.sum(1), lambda n, d: (rows(n, d),), 4),
    Kernel("reduction", "sum of columns", lambda x: x.sum(0), lambda n, d: (rows(n, d),), 4),
    Kernel(
        "reduction",
        "mean and variance of rows",
        lambda x: torch.var_mean(x, 1),
        lambda n, d: (rows(n, d),),
        4,
        results=2,
    ),
    Kernel("reduction", "maximum of rows", lambda x: x.max(1), lambda n, d: (rows(n, d),), 4),
    Kernel("softmax", "softmax", lambda x: x.softmax(-1), lambda n, d: (rows(n, d),), 8),
    Kernel("softmax", "softmax, backward", aten._softmax_backward_data, _softmax_backward, 12),
    Kernel("layer_norm", "layer norm", F.layer_norm, _normed, 8),
    Kernel("layer_norm", "layer norm, backward", aten.native_layer_norm_backward, _normed_backward, 12, 1e-3, 3),
    Kernel("copy", "copy", torch.clone, lambda n, d: (flat(n, d),), 8),
    Kernel("copy", "float32 to bfloat16", lambda x: x.to(torch.bfloat16), lambda n, d: (flat(n, d),), 6, 1e-2),
    Kernel("copy", "bfloat16 to float32", lambda x, _: x.to(torch.float32), _halves, 6, 1e-2),
    Kernel("copy", "transposed to contiguous", lambda x: x.t().contiguous(), lambda n, d: (square(n, d),), 8),
    Kernel("index", f"index_select of rows of {VECTOR}", torch.index_select, _vectors, 8 + 8 / VECTOR),
    Kernel("index", "x[index]", lambda x, i: x[i], lambda n, d: (flat(n, d), numbers(n, n, d)), 16),
    Kernel("index", "gather within rows", torch.gather, _gathered, 16),
    Kernel(
        "index", f"index_add of rows of {VECTOR}", lambda x, *of: x.index_add_(*of), _vectors_added, 12 + 8 / VECTOR
    ),
    Kernel("sort", "sort", lambda x: x.sort(), lambda n, d: (flat(n, d),), 16),
    Kernel("sort", "sort of rows", lambda x: x.sort(-1), lambda n, d: (rows(n, d),), 16),
    Kernel("sort", "topk of rows, 32", lambda x: x.topk(32), lambda n, d: (rows(n, d),), 4 + 12 * 32 / ROW),
)
"""float32 where nothing else is said, indices int64."""


def cases(scale: Scale) -> Iterator[Case]:
    for exponent in scale.exponents:
        elements = 1 << exponent
        for kernel in KERNELS:
            small = partial(kernel.operands, min(_CHECKED, elements))
            yield Case(
                kernel.group,
                kernel.name,
                "GB/s",
                operator(kernel.op, partial(kernel.operands, elements)),
                "device",
                amount=kernel.bytes * elements,
                elements=elements,
                footprint=kernel.bytes * elements,
                check=agree(kernel.op, small, kernel.tolerance, kernel.results),
            )
