"""Gather, scatter, index, masks: indices that exist, distinct ones where the order of writes is open."""

from __future__ import annotations

from typing import Any

import torch

from opgen.testing.build import Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.overload import Argument
from opgen.testing.rules import boolean_tensor, index_tensor, one_of
from opgen.testing.tensors import FLOATING, Numbers, broadcastable


def _sized(build: Build, shape: tuple[int, ...], dim: int) -> int:
    return shape[dim] if shape else 1


def _prepare_along(build: Build) -> dict[str, Any]:
    """self, dim, index, src for gather and the scatter family.

    ``index`` may be smaller than ``self`` off ``dim``, and ``src`` larger than ``index``. Without an addition, several
    writes to one place would leave it open which one stays, so the indices along ``dim`` are distinct.
    """
    shape = build.shape
    dim = build.dim(len(shape))
    size = _sized(build, shape, dim)
    spot = dim % max(len(shape), 1)
    gather = build.op.root == "gather"
    adds = build.op.root in {"scatter_add", "scatter_reduce"} or build.op.find("reduce") is not None
    length = build.size(0, size + 2) if gather or adds else build.size(0, size)
    if size == 0:
        length = 0
    index_shape = [
        length if at == spot else (build.size(0 if build.maybe(8) else min(1, extent), extent))
        for at, extent in enumerate(shape)
    ]
    if gather or adds or not shape:
        index = index_tensor(build, index_shape, size)
    else:
        generator = torch.Generator().manual_seed(build.size(0, 1000))
        spots = torch.rand([size if at == spot else n for at, n in enumerate(index_shape)], generator=generator)
        index = build.lay_out(spots.argsort(dim).narrow(dim, 0, length) if size else spots.long())
    src_shape = [extent + build.pick(0, 0, 1) for extent in index_shape]
    reduce = None
    if build.op.find("reduce"):
        names = ("sum", "prod", "amax", "amin", "mean") if build.op.root == "scatter_reduce" else ("add", "multiply")
        reduce = build.pick(*names)
    return {
        "self": build.tensor(shape, of=Numbers(-3, 3), expand=not build.op.inplace),
        "dim": dim,
        "index": index,
        # of the reductions the extremes have something to say about nan and infinity
        "src": build.tensor(src_shape, of=Numbers(-3, 3, special=reduce in {"amax", "amin"})),
        "sparse_grad": False,
        **({"reduce": reduce} if reduce else {}),
    }


def _prepare_rows(build: Build) -> dict[str, Any]:
    """self, dim, a one-dimensional index, and a source with a slice for each index."""
    shape = build.shape
    dim = build.dim(len(shape))
    size = _sized(build, shape, dim)
    distinct = build.op.root in {"index_copy", "index_fill"}
    length = build.size(0, size if distinct else size + 3) if size else 0
    if not shape:
        length = 1
    if distinct:
        generator = torch.Generator().manual_seed(build.size(0, 1000))
        places = torch.randperm(max(size, 1), generator=generator)[:length]
        index = build.lay_out(places - size if build.op.root == "index_fill" and size and build.flag() else places)
    else:
        index = index_tensor(build, (length,), size)
        if build.op.root in {"index_select", "index_add"} and build.maybe(3):
            index = build.lay_out(index.value.to(torch.int32))
    source_shape = list(shape)
    if shape:
        source_shape[dim] = length
    made: dict[str, Any] = {
        "self": build.tensor(shape, of=Numbers(-3, 3), expand=not build.op.inplace),
        "dim": dim,
        "index": index,
        "source": build.tensor(source_shape, of=Numbers(-3, 3)),
    }
    if build.op.root == "index_reduce":
        made["reduce"] = build.pick("prod", "mean", "amax", "amin")
    value = build.op.find("value")
    if value and value.tensor:
        made["value"] = build.tensor(())
    return made


def _index_list(build: Build, shape: tuple[int, ...], distinct: bool) -> list[TensorSpec | None]:
    """Indices for leading dims: nothing, int64 tensors that broadcast together, or bool masks over one dim or more."""
    if shape and build.maybe(4):
        covered = build.size(1, len(shape))
        return [build.tensor(shape[:covered], torch.bool)]
    if 0 in shape:
        return [build.lay_out(torch.empty(0, dtype=torch.int64)) for _ in range(build.size(1, len(shape)))]
    common = () if build.maybe(6) else tuple(build.size(1, 3) for _ in range(build.size(1, 2)))
    indices: list[TensorSpec | None] = []
    for size in shape[: build.size(1, max(len(shape), 1))]:
        if indices and build.maybe(4):
            indices.append(None)
        elif distinct:
            # distinct in this dim alone is enough for distinct places
            first = not any(i is not None for i in indices)
            row = torch.arange(size).flip(0)[:3] if first else torch.zeros(1, dtype=torch.int64)
            indices.append(build.lay_out(row))
        else:
            shape_here = broadcastable(build.source, common)
            indices.append(index_tensor(build, shape_here, size, -size if build.flag() else 0))
    return indices or [build.lay_out(torch.zeros(1, dtype=torch.int64))]


def _prepare_index(build: Build) -> dict[str, Any]:
    shape = build.shape or (3,)
    return {"self": build.tensor(shape), "indices": _index_list(build, shape, distinct=False)}


def _prepare_index_put(build: Build) -> dict[str, Any]:
    shape = build.shape or (3,)
    accumulate = build.flag()
    spec = build.tensor(shape, of=Numbers(-3, 3), expand=not build.op.inplace)
    indices = _index_list(build, shape, distinct=not accumulate)
    selected = spec.value[tuple(slice(None) if i is None else i.value for i in indices)]
    values = build.tensor(broadcastable(build.source, tuple(selected.shape)), of=Numbers(-3, 3))
    return {"self": spec, "indices": indices, "values": values, "accumulate": accumulate, "unsafe": False}


def _prepare_masked(build: Build) -> dict[str, Any]:
    mask_shape = broadcastable(build.source, build.shape)
    mask = build.tensor(mask_shape, torch.bool)
    self_shape = build.shape if build.op.inplace else broadcastable(build.source, build.shape)
    count = 1
    for size in build.shape:
        count *= size
    return {
        "self": build.tensor(self_shape, expand=not build.op.inplace),
        "mask": mask,
        "source": build.tensor((count + build.size(0, 2),)),
    }


def _prepare_flat(build: Build) -> dict[str, Any]:
    """take and put: one index over all elements, distinct where the order of writes is open."""
    spec = build.tensor(build.shape, expand=not build.op.inplace)
    count = spec.value.numel()
    shape = (build.size(0, count),) if count else (0,)
    accumulate = build.flag()
    if build.op.root == "put" and not accumulate:
        index = build.lay_out(torch.arange(count).flip(0)[: shape[0]])
    else:
        index = index_tensor(build, shape, count, -count)
    return {"self": spec, "index": index, "source": build.tensor(shape), "accumulate": accumulate}


def _prepare_embedding(build: Build) -> dict[str, Any]:
    rows, width = build.size(1, 6), build.pick(3, 1, 4, 8)
    indices = index_tensor(build, build.shape, rows)
    padding = build.size(-1, rows - 1)
    return {
        "weight": build.tensor((rows, width)),
        "indices": indices,
        "grad_output": build.tensor((*build.shape, width)),
        "num_weights": rows,
        "padding_idx": padding,
        "scale_grad_by_freq": build.flag(),
        "sparse": False,
    }


def _prepare_embedding_renorm(build: Build) -> dict[str, Any]:
    rows = build.size(1, 6)
    return {
        "self": build.tensor((rows, 3), expand=False),
        "indices": index_tensor(build, (build.size(0, 5),), rows),
        "max_norm": 1.0,
        "norm_type": build.pick(2.0, 1.0),
    }


def _repeats(build: Build, argument: Argument) -> Any:
    return build.tensor((build.size(0, 6),), build.pick(torch.int64, torch.int32), Numbers(0, 4, whole=True))


_ALONG = Domain(prepare=_prepare_along, ranks=(0, 3), accumulates=True, atomic=True)
_ROWS = Domain(prepare=_prepare_rows, ranks=(0, 3), accumulates=True, atomic=True)
_FLAT = Domain(prepare=_prepare_flat, ranks=(0, 3), accumulates=True, atomic=True)

TABLE = {
    "gather scatter scatter_add scatter_reduce": _ALONG,
    "index_select index_add index_copy index_fill index_reduce": _ROWS,
    "index _unsafe_index": Domain(prepare=_prepare_index, ranks=(1, 4)),
    "index_put _index_put_impl_ _unsafe_index_put": Domain(
        prepare=_prepare_index_put, ranks=(1, 4), accumulates=True, atomic=True
    ),
    "masked_select masked_scatter": Domain(prepare=_prepare_masked, ranks=(0, 4)),
    "take put": _FLAT,
    "embedding": Domain(prepare=_prepare_embedding, ranks=(0, 2)),
    "embedding_dense_backward": Domain(
        prepare=_prepare_embedding, ranks=(0, 2), dtypes=FLOATING, accumulates=True, atomic=True
    ),
    "embedding_renorm": Domain(prepare=_prepare_embedding_renorm, ranks=(1, 1), dtypes=FLOATING, accumulates=True),
    "repeat_interleave.Tensor": Domain(arguments={"repeats": _repeats, "output_size": one_of(None)}),
    "_masked_softmax": Domain(arguments={"mask": boolean_tensor, "mask_type": one_of(None)}),
}
