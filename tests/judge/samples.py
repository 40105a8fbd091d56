"""Sample inputs as PyTorch's databases make them, copied between devices storage for storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from judge import plan

SEED = 20_000


@dataclass(frozen=True)
class Call:
    """The arguments of one call of an OpInfo's operator, and what turns its result into something differentiable."""

    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    differentiable: Callable[[Any], Any] = lambda result: result
    summary: str = ""

    def __call__(self, function: Callable[..., Any], **more: Any) -> Any:
        """Calls ``function`` with the arguments."""
        return function(self.input, *self.args, **self.kwargs, **more)

    def copy(self, device: str) -> Call:
        """The same call with fresh copies of all tensors, layouts, overlaps and sharing kept.

        On the CPU when ``device`` is that; else where each was, since some arguments have to be on the CPU.
        """
        copy = _Copier("cpu" if device == "cpu" else None)
        return Call(
            copy(self.input),
            tuple(copy(argument) for argument in self.args),
            {name: copy.named(name, argument) for name, argument in self.kwargs.items()},
            self.differentiable,
            self.summary,
        )

    def widened(self) -> Call:
        """The same call on the CPU in double precision, with the same values."""
        plain = self.copy("cpu")
        parts = (plain.input, list(plain.args), plain.kwargs)
        given, args, kwargs = (map_leaves(widen, part) for part in parts)
        return Call(given, tuple(args), kwargs, self.differentiable, self.summary)

    def names(self, device: str) -> bool:
        """True when a tensor or an argument is on, or asks for, that kind of device."""
        found = flatten((self.input, self.args, self.kwargs))
        homes = [leaf.device if isinstance(leaf, Tensor) else leaf for leaf in found]
        return any(str(home).partition(":")[0] == device for home in homes if isinstance(home, (torch.device, str)))

    def home(self, device: str) -> str:
        """Where the result belongs: on the device that an argument names, else on ``device``."""
        named = [value for value in flatten((self.args, self.kwargs)) if isinstance(value, torch.device)]
        named += [value for name, value in self.kwargs.items() if name == "device" and isinstance(value, str)]
        return str(named[0]) if named else device

    def leaves(self) -> list[Tensor]:
        """The tensors that want a gradient, in order."""
        found = [leaf for leaf in flatten((self.input, self.args, self.kwargs)) if isinstance(leaf, Tensor)]
        return [leaf for leaf in dict.fromkeys(found) if leaf.requires_grad]


def seed(device: str) -> None:
    """Makes what follows the same in every run, on the CPU and on ``device``.

    torch.manual_seed would do, but where CUDA is built in and absent it formats a stack trace to be remembered with the
    call: 7 ms, several times for every sample.
    """
    torch.default_generator.manual_seed(SEED)
    if device.partition(":")[0] != "cpu":
        getattr(torch, device.partition(":")[0]).manual_seed_all(SEED)


def samples(op: Any, device: str, dtype: torch.dtype, *, requires_grad: bool = False) -> list[Any]:
    """The sample inputs that the plan asks for, made on ``device`` by PyTorch, the same in every run."""
    seed(device)
    # the function and not op.sample_inputs, which seeds again for each sample
    return plan.current.chosen(op.sample_inputs_func(op, device, dtype, requires_grad))


def calls(op: Any, device: str, dtype: torch.dtype, *, requires_grad: bool = False) -> Iterator[Call]:
    """The same as calls."""
    return map(call_of, samples(op, device, dtype, requires_grad=requires_grad))


def call_of(sample: Any) -> Call:
    """A SampleInput as a call."""
    return Call(sample.input, sample.args, sample.kwargs, sample.output_process_fn_grad, sample.summary())


def flatten(value: Any) -> list[Any]:
    """The leaves of nested tuples, lists and dicts; None is no leaf."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flatten(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flatten(item)]
    return [] if value is None else [value]


WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


def widen(value: Any) -> Any:
    """A tensor or a dtype in double precision, anything else as it is."""
    if isinstance(value, torch.dtype):
        return WIDE.get(value, value)
    if isinstance(value, Tensor) and value.dtype in WIDE:
        return value.detach().to(WIDE[value.dtype]).requires_grad_(value.requires_grad)
    return value


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Nested tuples, lists and dicts with every leaf replaced."""
    if isinstance(value, dict):
        return {name: map_leaves(function, item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(function, item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(function, item) for item in value)
    return function(value)


def copy_to(tensor: Tensor, device: str) -> Tensor:
    """A leaf on ``device`` with the tensor's sizes, strides, offset and everything else its storage holds."""
    if tensor.is_quantized or tensor.layout != torch.strided or type(tensor) not in (Tensor, torch.nn.Parameter):
        return _leaf(tensor.detach().to(device, copy=True), tensor)
    plain = tensor.detach()
    conjugated, negated = plain.is_conj(), plain.is_neg()
    if conjugated:
        plain = plain.conj()
    if negated:
        plain = torch._neg_view(plain)
    length = plain.untyped_storage().nbytes() // plain.itemsize
    if plain.is_contiguous() and not plain.storage_offset() and length == plain.numel():
        moved = plain.to(device, copy=True)
    else:
        whole = plain.as_strided((length,), (1,), 0).to(device, copy=True)
        moved = whole.as_strided(plain.shape, plain.stride(), plain.storage_offset())
    moved = moved.conj() if conjugated else moved
    moved = torch._neg_view(moved) if negated else moved
    return _leaf(moved, tensor)


def _leaf(copied: Tensor, tensor: Tensor) -> Tensor:
    return copied.requires_grad_(tensor.requires_grad)


class _Copier:
    """Copies each tensor once, so that one given twice is still one."""

    def __init__(self, device: str | None) -> None:
        self.device = device
        self.made: dict[int, Tensor] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in self.made:
                self.made[id(value)] = copy_to(value, self.device or str(value.device))
            return self.made[id(value)]
        if isinstance(value, torch.device):
            return torch.device(self.device) if self.device else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self(item) for item in value))
        if isinstance(value, (list, tuple)):
            return type(value)(self(item) for item in value)
        if isinstance(value, dict):
            return {name: self.named(name, item) for name, item in value.items()}
        return value

    def named(self, name: str, value: Any) -> Any:
        """An argument of that name: devices may be given as text."""
        return self.device if self.device and name == "device" and isinstance(value, str) else self(value)
