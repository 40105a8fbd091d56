"""What a test has to know about one operator overload, read from the schema that PyTorch registered for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

_LIST = re.compile(r"^List\[(.*)\]$")
_OPTIONAL = re.compile(r"^Optional\[(.*)\]$")


class UnknownOverload(LookupError):
    """PyTorch has no overload of that name in this process."""


class NeedsRule(LookupError):
    """Type and name say too little about an argument, so that none can be drawn."""


@dataclass(frozen=True)
class Kind:
    """The type of an argument: ``Tensor?[]`` is ``Kind("Tensor", optional=False, many=True, optional_items=True)``."""

    base: str
    optional: bool = False
    many: bool = False
    optional_items: bool = False

    @staticmethod
    def parse(text: str) -> Kind:
        """Reads TorchScript's spelling of a type, as ``str(argument.real_type)`` gives it."""
        optional = _OPTIONAL.match(text)
        text = optional[1] if optional else text
        many = _LIST.match(text)
        text = many[1] if many else text
        optional_items = _OPTIONAL.match(text)
        text = optional_items[1] if optional_items else text
        return Kind(text, optional is not None, many is not None, optional_items is not None)


@dataclass(frozen=True)
class Argument:
    """One argument of a schema."""

    name: str
    kind: Kind
    length: int | None
    keyword: bool
    out: bool
    written: bool
    has_default: bool
    default: Any

    @property
    def tensor(self) -> bool:
        """True for one tensor, given or optional; a list of tensors is not one."""
        return self.kind.base == "Tensor" and not self.kind.many


@dataclass(frozen=True, eq=False)
class Overload:
    """One operator overload: its name, its arguments and how it hands back its results.

    ``returns`` has for each result what the schema says of sharing: the letters of the arguments it may share storage
    with, ``*`` for a list of views, nothing for a new tensor.
    """

    name: str
    namespace: str
    base: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    pointwise: bool
    call: Callable[..., Any]
    schema: str

    @property
    def inplace(self) -> bool:
        """``add_`` but not ``__and__``."""
        return self.base.endswith("_") and not self.base.endswith("__")

    @property
    def root(self) -> str:
        """The name that the functional, in-place and out overloads share: ``add`` for ``add_``."""
        return self.base[:-1] if self.inplace else self.base

    @property
    def outs(self) -> tuple[Argument, ...]:
        """The ``out=`` arguments, in order."""
        return tuple(argument for argument in self.arguments if argument.out)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments that are not ``out=``."""
        return tuple(argument for argument in self.arguments if not argument.out)

    def find(self, name: str) -> Argument | None:
        """The argument of that name."""
        return next((argument for argument in self.arguments if argument.name == name), None)


def split_name(name: str) -> tuple[str, str, str]:
    """``"aten::add.Tensor"`` or ``"add.Tensor"`` to ``("aten", "add", "Tensor")``; no overload is ``""``."""
    namespace, _, rest = name.rpartition("::")
    base, _, overload = rest.partition(".")
    return namespace or "aten", base, overload


@cache
def load_overload(name: str) -> Overload:
    """Reads the registered schema of ``name``; a LookupError says that PyTorch knows no such overload."""
    namespace, base, overload = split_name(name)
    try:
        call = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    except AttributeError:
        raise UnknownOverload(f"PyTorch {torch.__version__} has no operator overload {name}") from None
    schema = call._schema
    return Overload(
        name=f"{namespace}::{base}" + (f".{overload}" if overload else ""),
        namespace=namespace,
        base=base,
        overload=overload,
        arguments=tuple(_read_argument(argument) for argument in schema.arguments),
        # PyTorch tells of a list of views that they are some, and not of what
        returns=tuple("".join(sorted(r.alias_info.before_set)) or "*" if r.alias_info else "" for r in schema.returns),
        pointwise=torch.Tag.pointwise in call.tags,
        call=call,
        schema=str(schema),
    )


def _read_argument(argument: Any) -> Argument:
    alias = argument.alias_info
    return Argument(
        name=argument.name,
        kind=Kind.parse(str(argument.real_type)),
        length=argument.N,
        keyword=argument.kwarg_only,
        out=argument.is_out,
        written=bool(alias and alias.is_write),
        has_default=argument.has_default_value(),
        default=argument.default_value,
    )


@cache
def functional_of(op: Overload) -> Overload | None:
    """The overload that takes the same inputs as an ``out=`` overload and returns new tensors."""
    wanted = [(argument.name, argument.kind) for argument in op.inputs]
    packet = getattr(getattr(torch.ops, op.namespace), op.base)
    for overload in packet.overloads():
        name = f"{op.namespace}::{op.base}" + ("" if overload == "default" else f".{overload}")
        candidate = load_overload(name)
        # factories' functional forms take dtype, layout, device and pin_memory on top
        inputs = [(a.name, a.kind) for a in candidate.arguments if a.name not in _FACTORY or (a.name, a.kind) in wanted]
        if not candidate.outs and inputs == wanted:
            return candidate
    return None


_FACTORY = frozenset({"dtype", "layout", "device", "pin_memory"})
