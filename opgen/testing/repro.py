"""A failing case as a script that needs nothing but PyTorch and the backend."""

from __future__ import annotations

from typing import Any

import torch

from opgen.testing.case import Case, DeviceHere, SeededGenerator, StorageOf, TensorSpec

_HEAD = """\
import torch

nan, inf = float("nan"), float("inf")


def call(device):
"""


# values past which a tensor of one value is written as such
_LONG = 8


def script(case: Case, device: str, reference: str | None = None) -> str:
    """Python source that makes the call on the CPU and on ``device`` and prints both results.

    ``reference`` is an expression for what to call on the CPU instead of the operator.
    """
    overload = case.op.overload or "default"
    target = f"torch.ops.{case.op.namespace}.{case.op.base}.{overload}"
    lines = [_HEAD.rstrip("\n")]
    known: dict[int, str] = {}
    for argument in case.op.arguments:
        if argument.name in case.arguments:
            value = case.arguments[argument.name]
            # a tensor given twice is one tensor in the script too
            first = known.setdefault(id(value), _local(argument.name)) if isinstance(value, TensorSpec) else ""
            text = first if first and first != _local(argument.name) else _source(value)
            lines.append(f"    {_local(argument.name)} = {text}")
    arguments = ", ".join(f"{a.name}={_local(a.name)}" for a in case.op.arguments if a.name in case.arguments)
    if reference:
        lines.append(f"    op = {reference} if device == 'cpu' else {target}")
    else:
        lines.append(f"    op = {target}")
    lines.append(f"    return op({arguments})")
    lines.append(f'\n\nprint("cpu:", call("cpu"))\nprint("{device}:", call("{device}"))\n')
    return "\n".join(lines)


def _local(name: str) -> str:
    return f"{name}_" if name in {"from", "lambda", "device", "op", "in"} else name


def _source(value: Any) -> str:
    if isinstance(value, TensorSpec):
        return _tensor_source(value)
    if isinstance(value, list):
        return f"[{', '.join(_source(item) for item in value)}]"
    if isinstance(value, StorageOf):
        return f"{_tensor_source(value.tensor)}.untyped_storage()"
    if isinstance(value, DeviceHere):
        return "torch.device(device)"
    if isinstance(value, SeededGenerator):
        return f"torch.Generator(device).manual_seed({value.seed})"
    return repr(value)


def _tensor_source(spec: TensorSpec) -> str:
    values = spec.base.tolist()
    if len(values) > _LONG and len(set(map(repr, values))) == 1:
        text = f"torch.full([{len(values)}], {values[0]!r}, dtype={spec.dtype})"
    else:
        text = f"torch.tensor({values}, dtype={spec.dtype})"
    if not spec.on_cpu:
        text += ".to(device)"
    if spec.strides == torch.empty(spec.shape).stride() and not spec.offset:
        shape = list(spec.shape)
        return text if shape == list(spec.base.shape) else f"{text}.reshape({shape})"
    return f"{text}.as_strided({list(spec.shape)}, {list(spec.strides)}, {spec.offset})"
