"""Operators that make tensors out of nothing."""

from __future__ import annotations

from typing import Any

import torch

from opgen.testing.build import OMIT, Build, Domain
from opgen.testing.overload import Argument
from opgen.testing.rules import one_of


def _dtype(build: Build, argument: Argument) -> Any:
    return build.dtype if not argument.kind.optional else build.pick(build.dtype, None)


def _format(build: Build, argument: Argument) -> Any:
    options = [None, torch.contiguous_format]
    if len(build.shape) == 4:
        options.append(torch.channels_last)
    return build.pick(*options)


def _layout(build: Build, argument: Argument) -> Any:
    return build.pick(None, torch.strided)


def _prepare_strided(build: Build) -> dict[str, Any]:
    spec = build.tensor(build.shape)
    return {"self": spec, "size": list(spec.shape), "stride": list(spec.strides)}


def _prepare_range(build: Build) -> dict[str, Any]:
    """Bounds a few steps apart. Whole numbers unless the result is sure to be floating: half a step may become 0."""
    floating = build.dtype.is_floating_point and build.op.find("dtype") is not None
    scale = 0.5 if floating and build.flag() else 1
    start, steps = build.size(-5, 5), build.size(0, 40)
    step = build.pick(1, 2, -1, 3)
    made: dict[str, Any] = {"start": start * scale, "end": (start + steps * step) * scale, "step": step * scale}
    if build.op.find("start") is None:
        made = {"end": steps * scale}
    if build.op.find("dtype") is not None:
        made["dtype"] = build.dtype
    return made


def _prepare_space(build: Build) -> dict[str, Any]:
    return {
        "start": build.size(-4, 4),
        "end": build.size(-4, 4),
        "steps": build.pick(5, 1, 2, 0, 40),
        "base": build.pick(10.0, 2.0),
    }


def _count(build: Build, argument: Argument) -> Any:
    return build.pick(3, 1, 0, 5, 8)


_FORM = {"dtype": _dtype, "memory_format": _format, "layout": _layout}
_EMPTY = Domain(undefined=True, arguments=_FORM, strides=True)

TABLE = {
    "empty.memory_format empty.out empty.names new_empty empty_like": _EMPTY,
    "empty_strided new_empty_strided": Domain(
        undefined=True, arguments={"dtype": _dtype}, prepare=_prepare_strided, strides=True
    ),
    "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full": Domain(
        arguments={**_FORM, "memory_format": lambda b, a: OMIT}, strides=True
    ),
    "fill zero": Domain(
        arguments={"value": lambda b, a: b.tensor(()) if a.kind.base == "Tensor" else b.pick(0, 1, 3, True)}
    ),
    "arange range": Domain(prepare=_prepare_range),
    "linspace logspace": Domain(prepare=_prepare_space, accumulates=True),
    "eye": Domain(arguments={"n": _count, "m": _count, "dtype": _dtype}),
    "scalar_tensor": Domain(arguments={"s": one_of(1, 0, 2.5), "dtype": _dtype}),
}
