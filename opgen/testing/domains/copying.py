"""Copies and casts, joining and rearranging, views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Build, Domain
from opgen.testing.case import Case, StorageOf, TensorSpec
from opgen.testing.overload import Argument
from opgen.testing.source import subset
from opgen.testing.tensors import DTYPES, Numbers, broadcastable

# every dtype holds these, so that no cast is undefined
_CASTABLE = Numbers(0, 1, whole=True)
_SMALL = Numbers(0, 100)


def _cast_target(build: Build, argument: Argument) -> Any:
    options = [None, build.dtype, torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.uint8, torch.bool]
    return build.pick(*(options if argument.kind.optional else options[1:]))


def _prepare_copy(build: Build) -> dict[str, Any]:
    """self and src of any two dtypes, src broadcasting to self."""
    dtype = build.pick(build.dtype, build.dtype, *DTYPES)
    names = [a.name for a in build.op.inputs if a.tensor]
    first = build.tensor(build.shape, of=_SMALL, expand=False)
    second = build.tensor(broadcastable(build.source, build.shape), dtype, _SMALL)
    # a copy may come from the CPU: a cast, a broadcast, a change of layout on the way
    return {names[0]: first, names[1]: replace(second, on_cpu=build.op.inplace and build.maybe(4))}


def copy_from(self: Tensor, dst: Tensor, non_blocking: bool = False) -> Tensor:
    """What the device's hook for copies does, in terms of the CPU's copy."""
    return dst.copy_(self)


def copy_from_and_resize(self: Tensor, dst: Tensor) -> Tensor:
    """What the device's hook for copies into an empty tensor does."""
    return dst.resize_(self.shape).copy_(self)


def _prepare_copy_from(build: Build) -> dict[str, Any]:
    dtype = build.pick(build.dtype, build.dtype, *DTYPES)
    made = {
        "self": build.tensor(build.shape, of=_SMALL),
        "dst": build.tensor(build.shape, dtype, _SMALL, expand=False),
    }
    one = build.pick("", "", "self", "dst")
    on_cpu = {name: replace(spec, on_cpu=name == one) for name, spec in made.items()}
    return {**on_cpu, "non_blocking": build.flag()}


def _prepare_copy_from_and_resize(build: Build) -> dict[str, Any]:
    return {
        "self": build.tensor(build.shape, of=_SMALL),
        "dst": TensorSpec.of(torch.empty(build.shape if build.flag() else 0, dtype=build.dtype)),
    }


def _prepare_joined(build: Build) -> dict[str, Any]:
    """Tensors that agree in every dim but the one they are joined along; legacy empty ones may be among them."""
    shape = build.shape
    dim = build.dim(len(shape))
    pieces = []
    for _ in range(build.size(1, 4)):
        piece = list(shape)
        if piece and build.op.root != "stack":
            piece[dim] = build.size(0, 4)
        pieces.append(build.tensor(piece, build.dtype if not build.maybe(6) else build.pick(*DTYPES)))
    if build.op.root == "cat" and build.maybe(8):
        pieces.append(TensorSpec.of(torch.empty(0, dtype=build.dtype)))
    return {"tensors": pieces, "dim": dim}


def _prepare_strided(build: Build) -> dict[str, Any]:
    """A new geometry inside the storage of self."""
    length = build.size(1, 24)
    offset = build.size(0, min(3, length - 1))
    size, stride, room = [], [], length - 1 - offset
    for _ in range(build.size(0, 3)):
        step = build.size(0, 4)
        extent = build.size(0 if build.maybe(8) else 1, 4)
        if step * max(extent - 1, 0) <= room:
            room -= step * max(extent - 1, 0)
            size.append(extent)
            stride.append(step)
    return {
        "self": TensorSpec.of(build.tensor((length,)).value),
        "size": size,
        "stride": stride,
        "storage_offset": offset or build.pick(None, 0),
    }


def _factors(build: Build, count: int) -> list[int]:
    """A shape with that many elements."""
    if count == 0:
        return [*build.pick([0], [0, 3], [2, 0])]
    shape: list[int] = []
    while count > 1 and len(shape) < 4:
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        factor = divisors[build.size(0, len(divisors) - 1)]
        shape.append(factor)
        count //= factor
    shape.append(count)
    return shape


def _prepare_view(build: Build) -> dict[str, Any]:
    spec = build.tensor(build.shape)
    size = _factors(build, spec.value.numel())
    if size and spec.value.numel() and build.maybe(3):
        size[build.size(0, len(size) - 1)] = -1
    return {"self": spec, "size": size, "shape": size}


def _prepare_reshape_alias(build: Build) -> dict[str, Any]:
    spec = TensorSpec.of(build.tensor(build.shape).value)
    size = _factors(build, spec.value.numel())
    return {"self": spec, "size": size, "stride": list(torch.empty(size).stride())}


def _prepare_unfold(build: Build) -> dict[str, Any]:
    dim = build.dim(len(build.shape))
    extent = build.shape[dim] if build.shape else 1
    return {
        "self": build.tensor(build.shape),
        "dimension": dim,
        "size": build.size(0, extent),
        "step": build.size(1, 3),
    }


def _prepare_unfold_backward(build: Build) -> dict[str, Any]:
    made = _prepare_unfold(build)
    view = made["self"].value.unfold(made["dimension"], made["size"], made["step"])
    return {
        "grad_in": build.tensor(view.shape),
        "input_sizes": list(build.shape),
        "dim": made["dimension"],
        "size": made["size"],
        "step": made["step"],
    }


def _prepare_pairs(build: Build) -> dict[str, Any]:
    """A real tensor whose last dim holds real and imaginary parts side by side."""
    return {"self": TensorSpec.of(build.tensor((*build.shape[:3], 2)).value)}


def _prepare_roll(build: Build) -> dict[str, Any]:
    rank = len(build.shape)
    dims = subset(build.source, range(rank))
    if not dims:
        return {"self": build.tensor(build.shape), "shifts": [build.size(-5, 5)], "dims": []}
    return {"self": build.tensor(build.shape), "shifts": [build.size(-5, 5) for _ in dims], "dims": dims}


def _prepare_padded(build: Build) -> dict[str, Any]:
    rank = len(build.shape)
    count = build.size(0, rank)
    pads = [build.size(0, 3) for _ in range(2 * count)]
    if pads and build.maybe(4) and build.shape[-1] > 1:
        pads[0] = -1
    return {"self": build.tensor(build.shape), "pad": pads, "value": build.pick(0, 1, 2)}


def _prepare_repeat(build: Build) -> dict[str, Any]:
    extra = build.size(0, 2)
    return {"self": build.tensor(build.shape), "repeats": [build.size(0, 3) for _ in range(extra + len(build.shape))]}


def _prepare_expand(build: Build) -> dict[str, Any]:
    narrow = broadcastable(build.source, build.shape)
    return {"self": build.tensor(narrow), "size": list(build.shape)}


def _prepare_split(build: Build) -> dict[str, Any]:
    dim = build.dim(len(build.shape))
    extent = build.shape[dim]
    first = build.size(0, extent)
    return {
        "self": build.tensor(build.shape),
        "split_size": build.size(1, 3),
        "split_sizes": [first, extent - first],
        "dim": dim,
    }


def _prepare_select(build: Build) -> dict[str, Any]:
    dim = build.dim(len(build.shape))
    extent = build.shape[dim]
    return {
        "self": build.tensor(build.shape),
        "dim": dim,
        "index": build.size(-extent, extent - 1) if extent else 0,
        "start": build.pick(None, build.size(-extent - 1, extent)),
        "end": build.pick(None, build.size(-extent - 1, extent + 1)),
        "step": build.size(1, 3),
        "length": None,
    }


def _prepare_resize(build: Build) -> dict[str, Any]:
    # rank 4 has a memory format to choose
    shape = [build.size(2, 4) for _ in range(4)] if build.maybe(3) else list(build.shape)
    spec = TensorSpec.of(build.tensor(tuple(shape)).value)
    if shape and build.flag():
        shape[0] = build.size(0, shape[0] + 2)
    layout = build.pick(None, torch.contiguous_format, *([torch.channels_last] * 2 if len(shape) == 4 else []))
    return {"self": spec, "size": shape, "the_template": build.tensor(shape), "memory_format": layout}


def _old_elements(case: Case, results: list[Any]) -> list[Any]:
    """Of a tensor that has grown, what lies where its old elements were: the rest holds whatever the memory held."""
    count = case.arguments["self"].base.numel()
    return [
        result.as_strided((min(count, result.numel()),), (1,)) if isinstance(result, Tensor) else result
        for result in results
    ]


def _prepare_source(build: Build) -> dict[str, Any]:
    """self takes over the storage of another tensor."""
    source = build.op.find("source")
    tensor = build.tensor(build.shape)
    return {
        "self": TensorSpec.of(build.tensor((2,)).value),
        "source": tensor if source is None or source.tensor else StorageOf(tensor),
        "size": list(tensor.shape),
        "stride": list(tensor.strides),
        "storage_offset": tensor.offset,
    }


def _prepare_pair(build: Build) -> dict[str, Any]:
    """Two tensors, or one twice."""
    first = build.tensor(build.shape)
    return {"self": first, "tensor": first if build.flag() else build.tensor(build.shape)}


def _prepare_triangle(build: Build) -> dict[str, Any]:
    return {"row": build.size(0, 5), "col": build.size(0, 5), "offset": build.size(-3, 3)}


def _prepare_chunk_cat(build: Build) -> dict[str, Any]:
    """Tensors that agree from ``dim`` on outwards, cut into chunks along it. Other arguments crash the CPU's kernel."""
    dim = build.size(0, 1)
    lead = [build.size(1, 3) for _ in range(dim)]
    tensors = [
        build.tensor((*lead, build.size(1, 5), *(build.size(1, 3) for _ in range(build.size(0, 2)))))
        for _ in range(build.size(1, 3))
    ]
    return {"tensors": tensors, "dim": dim, "num_chunks": build.size(1, 3)}


_CAST = Domain(numbers=_SMALL, arguments={"dtype": _cast_target}, strides=True)
_COMPLEX = (torch.complex64, torch.complex128)
_REAL_FOR_COMPLEX = (torch.float32, torch.float64)

TABLE = {
    "_to_copy to.dtype to.dtype_layout to.device": _CAST,
    "clone contiguous lift lift_fresh": Domain(strides=True),
    "copy copy_": Domain(prepare=_prepare_copy),
    "_copy_from": Domain(prepare=_prepare_copy_from, reference=copy_from, mutates=frozenset({"dst"})),
    "_copy_from_and_resize": Domain(
        prepare=_prepare_copy_from_and_resize, reference=copy_from_and_resize, mutates=frozenset({"dst"})
    ),
    "cat stack _stack": Domain(prepare=_prepare_joined, ranks=(1, 4)),
    "as_strided as_strided_copy": Domain(prepare=_prepare_strided),
    "view view_copy reshape _unsafe_view": Domain(prepare=_prepare_view, ranks=(0, 4)),
    "_reshape_alias": Domain(prepare=_prepare_reshape_alias, ranks=(0, 4)),
    "unfold unfold_copy": Domain(prepare=_prepare_unfold, ranks=(0, 3)),
    "unfold_backward": Domain(prepare=_prepare_unfold_backward, ranks=(1, 3), accumulates=True),
    "view_as_complex view_as_complex_copy": Domain(prepare=_prepare_pairs, dtypes=_REAL_FOR_COMPLEX),
    "view_as_real view_as_real_copy _conj _conj_physical conj_physical imag real": Domain(),
    "roll": Domain(prepare=_prepare_roll),
    "constant_pad_nd": Domain(prepare=_prepare_padded),
    "repeat": Domain(prepare=_prepare_repeat, ranks=(0, 3)),
    "expand expand_copy": Domain(prepare=_prepare_expand),
    "split split_with_sizes split_copy split_with_sizes_copy": Domain(prepare=_prepare_split, ranks=(1, 3)),
    "select slice select_copy slice_copy": Domain(prepare=_prepare_select, ranks=(1, 4)),
    "resize resize_as": Domain(prepare=_prepare_resize, normalize=_old_elements, grows=True),
    "set": Domain(prepare=_prepare_source),
    "is_set_to": Domain(prepare=_prepare_pair),
    # with an out= whose batch dims are laid out otherwise the CPU writes past its end
    "tril triu": Domain(ranks=(2, 4), dense_out=True),
    "_chunk_cat": Domain(prepare=_prepare_chunk_cat),
    "tril_indices triu_indices": Domain(
        prepare=_prepare_triangle, arguments={"dtype": lambda b, a: b.pick(torch.int64, torch.int32)}
    ),
    "diag_embed diagonal diagonal_copy": Domain(ranks=(2, 4)),
    "squeeze.dim squeeze.dims squeeze unsqueeze transpose permute alias detach flip": Domain(),
    "_local_scalar_dense item is_nonzero": Domain(prepare=lambda b: {"self": b.tensor(b.pick((), (1,), (1, 1)))}),
}
