"""A 0-d tensor of the CPU beside tensors of the device: an elementwise operator takes it, or says that it does not.

Tried on every elementwise overload that PyTorch has, each tensor argument in turn; that of a composite one shows in the
operators it is made of.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from opgen.testing.overload import Argument, Overload, load_overload

# What upstream's own check refuses on every device but the CPU: the registration of CUDA's kernel makes it, too ...
_CHECKED = "when checking argument"
# ... or its meta function, or its function for every device.
_REFUSED = {
    "addcdiv": "upstream's meta function takes CPU scalars for addcmul alone",
    "equal": "upstream's functions for the CPU and for CUDA compare within one device",
    "masked_fill.Scalar": "upstream's function wants the mask where self is",
}
_DTYPES = (torch.float32, torch.int64, torch.bool)


def _elementwise() -> list[Overload]:
    """Functional overloads with the tag pointwise and at least two tensors."""
    found = []
    for base in sorted(torch._C._dispatch_get_all_op_names()):
        if not base.startswith("aten::"):
            continue
        try:
            op = load_overload(base)
        except LookupError:  # TorchScript's own, which torch.ops does not show
            continue
        new = not op.outs and not any(argument.written for argument in op.arguments)
        if op.pointwise and new and len(_tensors(op)) >= 2 and op.returns == ("",):
            found.append(op)
    return found


def _tensors(op: Overload) -> list[Argument]:
    return [argument for argument in op.arguments if argument.tensor]


def _call(op: Overload, dtype: torch.dtype, device: str, scalar: str, on: str) -> Any:
    """``op`` of ones, but for ``scalar``: a 0-d tensor on ``on``."""
    positional, keywords = [], {}
    for argument in op.arguments:
        value: Any = {"float": 1.0, "number": 1, "int": 1, "bool": True, "str": "none"}.get(argument.kind.base)
        if argument.tensor:
            kind = torch.bool if argument.name in {"condition", "mask"} else dtype
            is_scalar = argument.name == scalar
            value = torch.ones(() if is_scalar else (3,), dtype=kind).to(on if is_scalar else device)
        elif argument.has_default or (argument.kind.optional and argument.keyword and argument.kind.base != "str"):
            continue
        elif argument.kind.optional:
            value = None
        if argument.keyword:
            keywords[argument.name] = value
        else:
            positional.append(value)
    return op.call(*positional, **keywords)


def _dtype_of(op: Overload, device: str) -> torch.dtype | None:
    """A dtype that the operator takes on the device when all its arguments are there."""
    for dtype in _DTYPES:
        try:
            _call(op, dtype, device, "", device)
        except RuntimeError:  # NotImplementedError is one
            continue
        return dtype
    return None


OPERATORS = _elementwise()


def test_there_are_such_operators() -> None:
    assert {"aten::logical_and", "aten::where.self", "aten::lerp.Tensor"} <= {op.name for op in OPERATORS}
    assert len(OPERATORS) >= 60


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name.removeprefix("aten::"))
@pytest.mark.filterwarnings("ignore")
def test_a_cpu_scalar_counts_as_the_same_scalar_on_the_device(op: Overload, device: str) -> None:
    dtype = _dtype_of(op, device)
    assert dtype is not None, f"it takes none of {_DTYPES}"
    name = op.name.removeprefix("aten::")
    for argument in _tensors(op):
        try:
            expected = _call(op, dtype, device, argument.name, device)
        except RuntimeError:  # it does not broadcast
            continue
        try:
            result = _call(op, dtype, device, argument.name, "cpu")
        except RuntimeError as error:
            assert "device" in str(error) and "INTERNAL" not in str(error), f"{argument.name}: {error}"
            assert _CHECKED in str(error) or name in _REFUSED, f"{argument.name}: {error}"
            continue
        if isinstance(expected, Tensor):
            assert result.device.type == torch.device(device).type
            torch.testing.assert_close(result, expected)
        else:
            assert result == expected


def test_the_gradient_of_pow_takes_a_cpu_scalar_as_base(device: str) -> None:
    base = torch.tensor(2.0, requires_grad=True)
    exponent = torch.tensor([0.0, 1.0, 2.0], device=device, requires_grad=True)
    by_base, by_exponent = torch.autograd.grad(torch.pow(base, exponent).sum(), (base, exponent))
    assert by_base.device.type == "cpu" and by_base.item() == 5
    torch.testing.assert_close(by_exponent.cpu(), torch.tensor([1.0, 2.0, 4.0]) * torch.tensor(2.0).log())
