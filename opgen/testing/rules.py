"""Rules for arguments: first the ones that follow from type and name, then building blocks for the domain table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from opgen.testing.build import OMIT, Build, Rule
from opgen.testing.case import DeviceHere, SeededGenerator, TensorSpec
from opgen.testing.overload import Argument, NeedsRule
from opgen.testing.source import choose, one_in, subset
from opgen.testing.tensors import FLOATING, Numbers, broadcastable

# how often an argument of a wrong value is tried, to see whether the device refuses what the CPU refuses
_WRONG = 24
# the dtypes that a second operand may bring along, to see type promotion
_PARTNERS = (torch.float32, torch.int64, torch.bool, torch.float64, torch.int32, torch.uint8, torch.bfloat16)

# Binary operators take a 0-dim CPU tensor beside device tensors, as they would a number; the rest of the elementwise
# ones refuse it on a device, which comparing with the CPU cannot show.
_TAKE_CPU_SCALARS = frozenset({
    *("add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "atan2"),
    *("maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
})  # fmt: skip


def make_argument(build: Build, argument: Argument) -> Any:
    """The value of an argument for which the domain table has no rule, or OMIT."""
    named = _BY_NAME.get((argument.kind.base, argument.name))
    if named:
        return named(build, argument)
    return _BY_KIND.get(argument.kind.base, _storage)(build, argument)


def _defaulted(build: Build, argument: Argument) -> bool:
    return argument.has_default and one_in(build.source, 3)


def _tensor(build: Build, argument: Argument) -> Any:
    if argument.kind.many:
        items = [build.tensor(build.shape) for _ in range(build.size(1, 3))]
        return items
    if argument.kind.optional and one_in(build.source, 3):
        return None
    if not (build.op.pointwise or build.domain.pointwise):
        return build.tensor(build.shape, expand=not argument.written)
    earlier = [value for value in build.made.values() if isinstance(value, TensorSpec)]
    if earlier and not earlier[0].on_cpu and build.op.pointwise and not argument.written and one_in(build.source, 12):
        return earlier[0]
    first = not earlier
    if first and _may_be_cpu_scalar(build, argument) and one_in(build.source, 8):
        return replace(build.tensor((), expand=False), on_cpu=True)
    shape = build.shape if argument.written else broadcastable(build.source, build.shape)
    dtype = build.dtype
    if not first and build.domain.promotes and one_in(build.source, 4):
        dtype = choose(build.source, _PARTNERS)
    # a written tensor that overlaps itself is refused: worth a look, but not in every fifth case
    expand = not argument.written or one_in(build.source, 8)
    spec = build.tensor(shape, dtype, expand=expand)
    takes_cpu = build.op.root in _TAKE_CPU_SCALARS and argument.name in {"other", "exponent"}
    on_device = any(not value.on_cpu for value in earlier)
    if takes_cpu and on_device and not shape and one_in(build.source, 2):
        return replace(spec, on_cpu=True)
    return spec


def _may_be_cpu_scalar(build: Build, argument: Argument) -> bool:
    """A number may stand on the left, too, of another operand that is a tensor on the device."""
    other = build.op.find("other") or build.op.find("exponent")
    return (
        build.op.root in _TAKE_CPU_SCALARS
        and not argument.written
        and other is not None
        and other.tensor
        and other is not argument
    )


def number(build: Build, argument: Argument) -> Any:
    """A Scalar that the main dtype can hold, now and then one of another kind."""
    if argument.kind.many:
        return [_number(build) for _ in range(_list_length(build))]
    if argument.kind.optional and one_in(build.source, 4):
        return None
    return OMIT if _defaulted(build, argument) else _number(build)


def _number(build: Build) -> Any:
    # the CPU refuses negative factors of unsigned numbers in some of its kernels, and wraps around in others
    whole = build.size(0 if build.dtype == torch.uint8 else -3, 5)
    # whether a factor fits is asked of the result's dtype, which an out= of another dtype changes on a device only
    if not build.op.outs and one_in(build.source, 8):
        return build.pick(whole, whole / 2, True)
    if build.dtype.is_complex and build.flag():
        return complex(whole / 2, build.size(-2, 2))
    if build.dtype.is_floating_point or build.dtype.is_complex:
        return whole / 2
    return build.flag() if build.dtype == torch.bool and not build.op.outs else whole


def _list_length(build: Build) -> int:
    return next((len(value) for value in build.made.values() if isinstance(value, list)), 2)


def _integer(build: Build, argument: Argument) -> Any:
    if argument.kind.many:
        return OMIT if _defaulted(build, argument) else [build.size(0, 3) for _ in range(argument.length or 2)]
    if argument.kind.optional and one_in(build.source, 3):
        return None
    return OMIT if _defaulted(build, argument) else build.size(0, 3)


def dim(build: Build, argument: Argument) -> Any:
    """A dim of ``self``, or a list of distinct ones; now and then one out of range."""
    rank = build.rank()
    if _defaulted(build, argument):
        return OMIT
    if argument.kind.many:
        if argument.kind.optional and one_in(build.source, 5):
            return None
        dims = subset(build.source, range(rank))
        return [d - rank if one_in(build.source, 3) else d for d in dims]
    if argument.kind.optional and one_in(build.source, 4):
        return None
    if one_in(build.source, _WRONG):
        return rank + 1
    return build.dim(rank)


def _permutation(build: Build, argument: Argument) -> Any:
    rank = build.rank()
    if build.op.root == "permute":
        return subset(build.source, range(rank), least=rank)
    return dim(build, argument)


def _flag(build: Build, argument: Argument) -> Any:
    if argument.kind.many:
        return [not build.maybe(4) for _ in range(argument.length or 3)]
    if argument.kind.optional and one_in(build.source, 3):
        return None
    return build.flag()


def _real(build: Build, argument: Argument) -> Any:
    if argument.kind.many:
        return [build.size(1, 4) / 2 for _ in range(argument.length or 2)]
    if argument.kind.optional and one_in(build.source, 2):
        return None
    return OMIT if _defaulted(build, argument) else build.size(0, 8) / 8


def _size(build: Build, argument: Argument) -> Any:
    return list(build.shape)


def _scalar_type(build: Build, argument: Argument) -> Any:
    if argument.kind.optional and build.flag():
        return None
    if build.dtype.is_complex:
        return build.dtype
    if build.dtype.is_floating_point or one_in(build.source, 3):
        return choose(build.source, (torch.float32, torch.float64, torch.bfloat16))
    return choose(build.source, (torch.int64, torch.int32, torch.float32))


def _memory_format(build: Build, argument: Argument) -> Any:
    options = [None, torch.preserve_format, torch.contiguous_format]
    if build.rank() == 4:
        options += [torch.channels_last, torch.channels_last]
    if build.rank() == 5:
        options.append(torch.channels_last_3d)
    if not argument.kind.optional:
        options = options[2:]
    return choose(build.source, options)


def _generator(build: Build, argument: Argument) -> Any:
    if argument.kind.optional and build.flag():
        return None
    return SeededGenerator(build.size(0, 100))


def _string(build: Build, argument: Argument) -> Any:
    if argument.has_default or argument.kind.optional:
        return OMIT if argument.has_default else None
    raise NeedsRule(
        f"{build.op.name}: string argument {argument.name!r} needs a rule: `arguments` of check_overload, or a line "
        "in the table of domains"
    )


def _rounding_mode(build: Build, argument: Argument) -> Any:
    return build.pick(None, "floor", "trunc")


def _omit(build: Build, argument: Argument) -> Any:
    return OMIT if argument.has_default else None


def _device(build: Build, argument: Argument) -> Any:
    return DeviceHere()


def _storage(build: Build, argument: Argument) -> Any:
    raise NeedsRule(f"{build.op.name}: argument {argument.name!r} of type {argument.kind.base} needs a rule")


_BY_KIND: dict[str, Rule] = {
    "Tensor": _tensor,
    "number": number,
    "int": _integer,
    "bool": _flag,
    "float": _real,
    "complex": number,
    "str": _string,
    "ScalarType": _scalar_type,
    "Layout": _omit,
    "Device": _device,
    "Generator": _generator,
    "MemoryFormat": _memory_format,
    "Storage": _storage,
    "Stream": _storage,
    "Dimname": _storage,
}

_BY_NAME: dict[tuple[str, str], Rule] = {
    ("int", "dim"): dim,
    ("int", "dims"): _permutation,
    ("int", "dim0"): dim,
    ("int", "dim1"): dim,
    ("int", "size"): _size,
    ("int", "reduction"): lambda build, argument: build.size(0, 2),
    ("int", "diagonal"): lambda build, argument: build.size(-3, 3),
    ("bool", "pin_memory"): _omit,
    ("bool", "non_blocking"): _omit,
    ("str", "rounding_mode"): _rounding_mode,
    ("str", "approximate"): lambda build, argument: build.pick("none", "tanh"),
    ("float", "eps"): lambda build, argument: build.pick(1e-5, 1e-3),
    ("float", "momentum"): lambda build, argument: build.pick(0.1, 0.5),
}


# building blocks of the domain table


def values(low: float, high: float, *, special: bool = False, nonzero: bool = False, whole: bool = False) -> Rule:
    """A tensor, a number or a list of either, of values in [low, high], shaped as it would be without the rule.

    A Scalar is a whole number where there is one in between.
    """
    of = Numbers(low, high, whole=whole, special=special, nonzero=nonzero)

    def rule(build: Build, argument: Argument) -> Any:
        if argument.kind.base == "Tensor":
            return _shaped_as_ever(replace(build, domain=replace(build.domain, numbers=of)), argument)
        made = build.made.get(argument.name)
        return (
            [_number_of(build, argument, of) for _ in made]
            if isinstance(made, list)
            else _number_of(build, argument, of)
        )

    return rule


def _number_of(build: Build, argument: Argument, of: Numbers) -> Any:
    first, last = math.ceil(of.low), math.floor(of.high)
    if argument.kind.base != "int" and not of.whole and (argument.kind.base == "float" or first > last):
        value = of.low + (of.high - of.low) * build.size(0, 8) / 8
        return value or (of.high or of.low if of.nonzero else value)
    if first > last:
        raise ValueError(f"{build.op.name}: no whole number for {argument.name!r} lies in [{of.low}, {of.high}]")
    return build.size(first, last) or (int(of.nonzero) if last else -int(of.nonzero))


def _shaped_as_ever(build: Build, argument: Argument, dtype: torch.dtype | None = None) -> Any:
    """Tensors shaped as they would be without a rule: as `Domain.prepare` has made them, where it has."""
    if argument.name not in build.made:
        return _tensor(replace(build, dtype=dtype or build.dtype), argument)

    def redraw(made: Any) -> Any:
        if isinstance(made, list):
            return [redraw(item) for item in made]
        if not isinstance(made, TensorSpec):
            return made
        drawn = build.tensor(made.shape, dtype or made.dtype, expand=not argument.written)
        # an operator may have to have it contiguous
        return TensorSpec.of(drawn.value, made.on_cpu) if made.dense else replace(drawn, on_cpu=made.on_cpu)

    return redraw(build.made[argument.name])


def constant(value: Any) -> Rule:
    """Always this value."""
    return lambda build, argument: value


def one_of(*options: Any) -> Rule:
    """One of these."""
    return lambda build, argument: build.pick(*options)


def boolean_tensor(build: Build, argument: Argument) -> Any:
    """A bool tensor, shaped as it would be without the rule."""
    return _shaped_as_ever(build, argument, torch.bool)


def like_self(build: Build, argument: Argument) -> Any:
    """A tensor of self's shape and dtype."""
    if argument.kind.optional and one_in(build.source, 3):
        return None
    return build.tensor(build.made["self"].shape)


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself when it is floating, float32 otherwise."""
    return dtype if dtype in FLOATING else torch.float32


def index_tensor(build: Build, shape: tuple[int, ...] | list[int], high: int, low: int = 0) -> TensorSpec:
    """int64 indices in [low, high), in any layout."""
    return build.tensor(shape, torch.int64, Numbers(low, max(high - 1, low), whole=True))
