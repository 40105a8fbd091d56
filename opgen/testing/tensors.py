"""Values, shapes and memory layouts of the tensors in a test case."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from opgen.testing.case import TensorSpec
from opgen.testing.source import Source, choose, one_in, permutation

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGRAL = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
DTYPES = (*FLOATING, *INTEGRAL, torch.bool, *COMPLEX)

# what lies between the elements of a view: a value that no operator would give back by chance
_GAP = 77


@dataclass(frozen=True)
class Numbers:
    """Which values a tensor may hold.

    ``whole`` values only; ``special``: nan, infinities, signed zeros and the type's extremes may occur;
    ``nonzero``: no value is zero (rounding to an integer type included). ``cuts`` False: complex values keep off the
    axes, where poles and branch cuts lie and libraries differ in the sign of a zero.
    """

    low: float = -4.0
    high: float = 4.0
    whole: bool = False
    special: bool = False
    nonzero: bool = False
    cuts: bool = True


ORDINARY = Numbers()


def numbers(source: Source, shape: tuple[int, ...], dtype: torch.dtype, of: Numbers) -> Tensor:
    """A contiguous CPU tensor of such values.

    Small whole numbers come first: they shrink to something readable, and they hold ties, on which sorting, comparing
    and rounding operators differ.
    """
    generator = torch.Generator().manual_seed(source.integer(0, 1 << 12))
    if dtype.is_complex:
        parts = of if of.cuts else replace(of, nonzero=True)
        pair = _real_numbers(source, (*shape, 2), torch.float64, parts, generator)
        return torch.view_as_complex(pair).to(dtype)
    return _real_numbers(source, shape, dtype, of, generator)


def _real_numbers(
    source: Source, shape: tuple[int, ...], dtype: torch.dtype, of: Numbers, generator: torch.Generator
) -> Tensor:
    low = max(of.low, 0.0) if dtype in (torch.uint8, torch.bool) else of.low
    high = min(of.high, 1.0) if dtype == torch.bool else of.high
    whole = of.whole or not dtype.is_floating_point or source.integer(0, 2) == 0
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    if whole and high - low >= 1:
        first, last = -(-low // 1), high // 1
        values = (torch.rand(shape, generator=generator, dtype=torch.float64) * (last - first + 1)).floor() + first
        values = values.clamp(max=last)
    if of.nonzero:
        values = torch.where(values.abs() < 0.25, torch.full_like(values, high if high > 0 else low), values)
    values = values.to(dtype)
    if of.special and dtype != torch.bool and values.numel() and one_in(source, 3):
        specials = _specials(dtype)
        picks = torch.randint(len(specials), shape, generator=generator)
        hits = torch.rand(shape, generator=generator) < 0.4
        values = torch.where(hits, specials[picks], values)
    return values


def _specials(dtype: torch.dtype) -> Tensor:
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        nan, inf = float("nan"), float("inf")
        return torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, info.max, info.min, info.tiny], dtype=dtype)
    bounds = torch.iinfo(dtype)
    return torch.tensor([0, 1, bounds.max, bounds.min], dtype=dtype)


def draw_shape(source: Source, low: int = 0, high: int = 4, least: int = 0, large: bool = True) -> tuple[int, ...]:
    """A shape of ``low`` to ``high`` dims, none smaller than ``least``.

    Ranks 1 and 2 are the commonest; sizes 0 and 1 are always among the choices. Now and then one dim is larger than a
    warp or a vector register, so that loops over blocks and their tails are run.
    """
    ranks = [rank for rank in (2, 1, 2, 3, 1, 0, 4, 3, 5) if low <= rank <= high]
    rank = choose(source, ranks or [low])
    sizes = [size for size in (2, 3, 1, 4, 5, 7) if size >= least] or [least]
    shape = [choose(source, sizes) for _ in range(rank)]
    if rank and least == 0 and one_in(source, 14):
        shape[source.integer(0, rank - 1)] = 0
    elif rank and large and one_in(source, 14):
        shape[source.integer(0, rank - 1)] = source.integer(33, 300)
    return tuple(shape)


def broadcastable(source: Source, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``shape``: the same, or with size-1 dims, or without its leading dims."""
    if not shape or source.integer(0, 2) < 2:
        return shape
    kept = shape[source.integer(0, len(shape)) :]
    return tuple(1 if one_in(source, 3) else size for size in kept)


def lay_out(source: Source, tensor: Tensor, expand: bool = True, dense: bool = True) -> TensorSpec:
    """Puts a CPU tensor into memory in one of the ways that views come about.

    With ``expand`` a dim may become a stride-0 dim, which repeats the values of its first index. Without ``dense`` the
    layout is one that is not contiguous, where rank and sizes allow it.
    """
    shape = tuple(tensor.shape)
    rank = len(shape)
    kinds = ["contiguous"]
    if rank >= 1:
        kinds += ["sliced", "offset"]
    if rank >= 2:
        kinds += ["permuted", "permuted"]
    if rank >= 1 and expand:
        kinds.append("expanded")
    if rank in (4, 5):
        kinds.append("channels_last")
    if 1 in shape:
        kinds.append("odd_ones")
    if not dense and rank:
        kinds = [kind for kind in kinds if kind not in {"contiguous", "offset", "odd_ones"}]
    kind = choose(source, kinds)
    if kind == "contiguous":
        return TensorSpec.of(tensor)

    order = list(range(rank))
    steps = [1] * rank
    offset = 0
    expanded: set[int] = set()
    if kind == "permuted":
        order = permutation(source, rank)
        order = order[::-1] if order == list(range(rank)) and not dense else order
    elif kind == "channels_last":
        order = [0, *range(2, rank), 1]
    elif kind == "sliced":
        steps[source.integer(0, rank - 1)] = 2
        offset = source.integer(0, 1)
    elif kind == "offset":
        offset = source.integer(1, 5)
    elif kind == "expanded":
        expanded = {source.integer(0, rank - 1)}
        tensor = tensor.narrow(min(expanded), 0, 1).expand(shape) if shape[min(expanded)] else tensor

    strides = [0] * rank
    size = 1
    for dim in reversed(order):
        if dim in expanded:
            continue
        strides[dim] = size * steps[dim]
        size *= max(shape[dim], 1) * steps[dim]
    if kind == "odd_ones":
        # a dim of size 1 is never stepped along, so views leave any stride there: x.t() of one row, x[:, :1]
        strides = [source.integer(0, 9) if shape[dim] == 1 else strides[dim] for dim in range(rank)]
    base = torch.full((size + offset,), _GAP, dtype=torch.float64).to(tensor.dtype)
    spec = TensorSpec(base, shape, tuple(strides), offset)
    if tensor.numel():
        writable = spec.value
        for dim in expanded:
            writable, tensor = writable.narrow(dim, 0, 1), tensor.narrow(dim, 0, 1)
        writable.copy_(tensor)
    return spec


def flip(source: Source, spec: TensorSpec) -> TensorSpec:
    """Now and then the same values as a lazily conjugated or negated view, as ``x.conj()`` and its ``.imag`` are."""
    if spec.dtype.is_complex and one_in(source, 8):
        return replace(spec, base=spec.base.conj().resolve_conj(), conjugated=True)
    # an unsigned number has no negative to store
    if (spec.dtype.is_floating_point or spec.dtype.is_complex) and one_in(source, 24):
        return replace(spec, base=-spec.base, negated=True)
    return spec
