"""A test case as data: arguments that can be made real on any device, again and again.

A tensor argument is kept as its whole storage plus a geometry, because what lies between a view's elements is part of
the test: a kernel that writes there is wrong, and a kernel that reads there as if the tensor were contiguous is too.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from opgen.testing.overload import Overload


@dataclass(frozen=True, eq=False)
class TensorSpec:
    """A tensor on no particular device.

    ``base`` is the storage's content, a one-dimensional CPU tensor. ``on_cpu`` keeps the tensor on the CPU even when
    the other arguments go to the device: a 0-dim CPU tensor may be mixed with device tensors. ``conjugated`` and
    ``negated`` say that the tensor is a view whose values are those of the storage with another sign.
    """

    base: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    on_cpu: bool = False
    conjugated: bool = False
    negated: bool = False

    @staticmethod
    def of(tensor: Tensor, on_cpu: bool = False) -> TensorSpec:
        """A contiguous spec with ``tensor``'s values."""
        # contiguous() would keep the odd strides of size-1 dims, clone() to a format does not
        base = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).view(-1)
        return TensorSpec(base, tuple(tensor.shape), torch.empty(tensor.shape).stride(), 0, on_cpu)

    @property
    def dtype(self) -> torch.dtype:
        """The element type."""
        return self.base.dtype

    @property
    def dense(self) -> bool:
        """True where the elements lie in the order of their indices from the start of the storage."""
        return self.strides == torch.empty(self.shape).stride() and not self.offset

    @property
    def value(self) -> Tensor:
        """The tensor on the CPU. It shares ``base``: do not write to it."""
        return self.view_of(self.base)

    def view_of(self, base: Tensor) -> Tensor:
        """The tensor in a storage like ``base``, on any device."""
        tensor = base.as_strided(self.shape, self.strides, self.offset)
        tensor = tensor.conj() if self.conjugated else tensor
        return torch._neg_view(tensor) if self.negated else tensor

    def __repr__(self) -> str:
        name = str(self.dtype).removeprefix("torch.")
        text = f"{name}{list(self.shape)}"
        if self.strides != torch.empty(self.shape).stride():
            text += f" strides={list(self.strides)}"
        if self.offset:
            text += f" offset={self.offset}"
        flags = {"on_cpu": self.on_cpu, "conjugated": self.conjugated, "negated": self.negated}
        text += "".join(f" {flag}" for flag, is_set in flags.items() if is_set)
        if self.value.numel() <= 12:
            text += f" {self.value.tolist()}"
        return f"<{text}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What hypothesis prints of it."""
        printer.text(repr(self))


class DeviceHere:
    """Stands for the device under test."""

    def __repr__(self) -> str:
        return "<device>"


@dataclass(frozen=True)
class StorageOf:
    """Stands for the storage of a tensor."""

    tensor: TensorSpec


@dataclass(frozen=True, eq=False)
class MadeBy:
    """Stands for what a function of PyTorch's makes on the device under test: a quantized tensor, or a sparse one.

    ``function`` is its name, ``torch.sparse_coo_tensor`` say, and ``arguments`` what it is called with.
    """

    function: str
    arguments: tuple[Any, ...]

    def call(self, arguments: list[Any]) -> Any:
        """What it makes of arguments that are ready. Its warnings are not those of the operator that is looked at."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return functools.reduce(getattr, self.function.split(".")[1:], torch)(*arguments)

    def __repr__(self) -> str:
        return f"{self.function}({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True)
class SeededGenerator:
    """Stands for a new generator on the device under test."""

    seed: int


@dataclass(frozen=True, eq=False)
class Case:
    """One call of an overload: the arguments by name, in schema order. Absent ones take their defaults."""

    op: Overload
    arguments: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.op.name}({arguments})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What hypothesis prints of it."""
        printer.text(repr(self))

    def dense(self) -> Case:
        """The same call with every tensor contiguous in a storage of its own."""
        return self.with_tensors(lambda spec: TensorSpec.of(spec.value, spec.on_cpu))

    def with_tensors(self, make: Callable[[TensorSpec], TensorSpec]) -> Case:
        """The same call with another tensor in the place of each; one that is given twice stays one."""
        known: dict[int, TensorSpec] = {}

        def copy(value: Any) -> Any:
            if isinstance(value, list):
                return [copy(item) for item in value]
            if isinstance(value, TensorSpec):
                if id(value) not in known:
                    known[id(value)] = make(value)
                return known[id(value)]
            if isinstance(value, MadeBy):
                return MadeBy(value.function, tuple(copy(item) for item in value.arguments))
            return value

        return Case(self.op, {name: copy(value) for name, value in self.arguments.items()})

    def tensors(self) -> Iterator[tuple[str, TensorSpec]]:
        """Every tensor once, with a path that names it: ``self``, ``tensors[1]``."""
        seen: set[int] = set()
        for name, value in self.arguments.items():
            for path, spec in specs_in(value, name):
                if id(spec) not in seen:
                    seen.add(id(spec))
                    yield path, spec


def specs_in(value: Any, path: str) -> Iterator[tuple[str, TensorSpec]]:
    """The tensors that the value at ``path`` is made of, with the paths of each."""
    if isinstance(value, TensorSpec):
        yield path, value
    elif isinstance(value, StorageOf):
        yield path, value.tensor
    elif isinstance(value, (list, MadeBy)):
        for position, item in enumerate(value if isinstance(value, list) else value.arguments):
            yield from specs_in(item, f"{path}[{position}]")


@dataclass(frozen=True)
class Live:
    """A case made real on one device: what to call with, and the storages behind it to look at afterwards."""

    positional: list[Any]
    keywords: dict[str, Any]
    tensors: dict[str, Tensor]
    bases: dict[str, Tensor]


def make_live(case: Case, device: str, leaves: Callable[[str], bool] = lambda path: False) -> Live:
    """Builds fresh arguments on ``device``. A spec that occurs twice becomes one tensor, given twice.

    Floating tensors ask for their gradient where ``leaves`` says so.
    """
    known: dict[int, Tensor] = {}
    tensors: dict[str, Tensor] = {}
    bases: dict[str, Tensor] = {}

    def build(value: Any, path: str) -> Any:
        if isinstance(value, TensorSpec):
            if id(value) not in known:
                bases[path] = value.base.clone() if value.on_cpu else value.base.clone().to(device)
                known[id(value)] = value.view_of(bases[path])
                if leaves(path) and (value.dtype.is_floating_point or value.dtype.is_complex):
                    known[id(value)] = known[id(value)].detach().requires_grad_()
                tensors[path] = known[id(value)]
            return known[id(value)]
        if isinstance(value, StorageOf):
            return build(value.tensor, path).untyped_storage()
        if isinstance(value, DeviceHere):
            return torch.device(device)
        if isinstance(value, SeededGenerator):
            return torch.Generator(device=device).manual_seed(value.seed)
        if isinstance(value, list):
            return [build(item, f"{path}[{position}]") for position, item in enumerate(value)]
        if isinstance(value, MadeBy):
            return value.call(build(list(value.arguments), path))
        return value

    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in case.op.arguments:
        if argument.name in case.arguments:
            live = build(case.arguments[argument.name], argument.name)
            # once a defaulted argument has been left out, position no longer says which one is meant
            if argument.keyword or len(positional) + len(keywords) != case.op.arguments.index(argument) or keywords:
                keywords[argument.name] = live
            else:
                positional.append(live)
    return Live(positional, keywords, tensors, bases)
