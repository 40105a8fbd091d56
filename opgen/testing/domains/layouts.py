"""Operators that make sparse, quantized and nested tensors out of dense ones."""

from __future__ import annotations

from typing import Any

import torch

from opgen.testing.build import Build, Domain
from opgen.testing.case import MadeBy, TensorSpec
from opgen.testing.overload import Argument
from opgen.testing.rules import one_of
from opgen.testing.tensors import Numbers

_MANY_ZEROS = Numbers(-1, 1, whole=True)
# no quotient of a drawn value by one of these lies between two integers: the CPU rounds such a one before or after it
# adds the zero point, by dtype and scheme
_SCALES = (0.3927, 0.0317, 1.0471)


def _prepare_to_sparse(build: Build) -> dict[str, Any]:
    """COO of any rank; the compressed layouts take matrices, in blocks that divide them."""
    layout = build.pick(None, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
    if layout in (None, torch.sparse_coo):
        return {"self": build.tensor(build.shape), "layout": layout, "blocksize": None, "dense_dim": None}
    blocked = layout in (torch.sparse_bsr, torch.sparse_bsc)
    made = _matrix(build)
    return {**made, "layout": layout, "blocksize": made["blocksize"] if blocked else None}


def _matrix(build: Build) -> dict[str, Any]:
    """A matrix of blocks; one case in twelve is no whole number of them."""
    block = [build.size(1, 2), build.size(1, 3)]
    rows, columns = (size * build.size(1, 4) for size in block)
    rows += build.maybe(12)
    return {"self": build.tensor((rows, columns)), "blocksize": block, "dense_dim": None}


def _prepare_row_indices(build: Build) -> dict[str, Any]:
    """Row numbers in order, as a coalesced matrix has them, in a row: the CPU's kernel takes them for dense."""
    size = build.size(1, 7)
    count = build.pick(4, 0, 1, 40)
    rows = torch.tensor(sorted(build.size(0, size - 1) for _ in range(count)), dtype=build.dtype)
    return {"self": TensorSpec.of(rows), "size": size}


def _prepare_row_offsets(build: Build) -> dict[str, Any]:
    """Offsets of rows, and a column for each element."""
    counts = torch.tensor([build.size(0, 3) for _ in range(build.size(1, 6))])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]).to(build.dtype)
    columns = torch.tensor([build.size(0, 8) for _ in range(int(offsets[-1]))], dtype=build.dtype)
    # the CPU's kernel takes both for dense
    return {"crow_indices": TensorSpec.of(offsets), "col_indices": TensorSpec.of(columns)}


def _quantized_dtype(build: Build, argument: Argument) -> Any:
    return build.pick(torch.qint8, torch.quint8, torch.qint32)


def _scale(build: Build, argument: Argument) -> Any:
    if argument.kind.base == "Tensor":
        return TensorSpec.of(torch.tensor(build.pick(*_SCALES), dtype=torch.float32))
    return build.pick(*_SCALES)


def _zero_point(build: Build, argument: Argument) -> Any:
    zero = build.pick(0, 5, 100)
    return TensorSpec.of(torch.tensor(zero)) if argument.kind.base == "Tensor" else zero


def _prepare_several(build: Build) -> dict[str, Any]:
    count = build.size(1, 3)
    return {
        "tensors": [build.tensor(build.shape) for _ in range(count)],
        "scales": TensorSpec.of(torch.tensor([build.pick(*_SCALES) for _ in range(count)])),
        "zero_points": TensorSpec.of(torch.tensor([build.pick(0, 5, 100) for _ in range(count)])),
    }


def _prepare_channels(build: Build) -> dict[str, Any]:
    """A scale and a zero point for each slice of one dim."""
    axis = build.size(0, len(build.shape) - 1)
    count = build.shape[axis]
    scales = torch.tensor([build.pick(*_SCALES) for _ in range(count)], dtype=torch.float64)
    zeros = torch.tensor([build.pick(0, 5, 100) for _ in range(count)], dtype=torch.int64)
    made = {"zero_points": TensorSpec.of(zeros), "zero_point": TensorSpec.of(zeros)}
    return {
        "self": build.tensor(build.shape),
        "scales": TensorSpec.of(scales),
        "scale": TensorSpec.of(scales),
        "axis": axis,
        **made,
    }


def _quantized(build: Build, argument: Argument) -> Any:
    """A quantized tensor, with one scale or with one for each slice of a dim; a dense one of what has no such type."""
    tensor = build.tensor(build.shape, of=Numbers(-100, 100, whole=True))
    if build.dtype not in _STORED or build.maybe(4):
        return tensor
    if not build.shape or build.flag():
        return MadeBy("torch._make_per_tensor_quantized_tensor", (tensor, build.pick(*_SCALES), build.pick(0, 5, 100)))
    channels = _prepare_channels(build)
    made = (tensor, channels["scales"], channels["zero_points"], channels["axis"])
    return MadeBy("torch._make_per_channel_quantized_tensor", made)


def _prepare_sparse_dim(build: Build) -> dict[str, Any]:
    """How many of the dims are sparse, the rest being dense; one case in twelve names one too many."""
    return {"self": build.tensor(build.shape), "sparse_dim": build.size(1, len(build.shape)) + build.maybe(12)}


def _prepare_padded(build: Build) -> dict[str, Any]:
    """A padded batch of sequences, and which of its elements there are."""
    batch, length, width = build.size(1, 3), build.size(1, 5), build.size(1, 4)
    lengths = torch.tensor([build.size(1, length) for _ in range(batch)])
    mask = torch.arange(length) < lengths[:, None]
    if build.maybe(8):
        mask = mask.flip(1)  # not aligned to the left
    sizes = torch.stack([lengths, torch.full((batch,), width)], dim=1)
    padded = TensorSpec.of(build.tensor((batch, length, width)).value)
    return {
        "t": padded,
        "mask": TensorSpec.of(mask),
        "mask_check": True,
        "padded": padded,
        "cpu_nested_shape_example": TensorSpec.of(sizes, on_cpu=True),
        "fuse_transform_0213": False,
    }


def _prepare_buffer(build: Build) -> dict[str, Any]:
    """A buffer in which the pieces of a nested tensor lie one after the other."""
    sizes = torch.tensor([[build.size(1, 4), build.size(1, 3)] for _ in range(build.size(1, 3))])
    strides = torch.stack([sizes[:, 1], torch.ones(len(sizes), dtype=torch.int64)], dim=1)
    counts = sizes.prod(1)
    offsets = counts.cumsum(0) - counts
    return {
        "self": TensorSpec.of(build.tensor((int(counts.sum()),)).value),
        "nested_size": TensorSpec.of(sizes, on_cpu=True),
        "nested_strides": TensorSpec.of(strides, on_cpu=True),
        "offsets": TensorSpec.of(offsets, on_cpu=True),
    }


_INDICES = (torch.int64, torch.int32)
_QUANTIZED = Domain(
    dtypes=(torch.float32,),
    numbers=Numbers(-20, 20),
    arguments={"dtype": _quantized_dtype, "scale": _scale, "zero_point": _zero_point},
)
_STORED = (torch.int8, torch.uint8, torch.int32)

TABLE = {
    "_to_sparse": Domain(prepare=_prepare_to_sparse, numbers=_MANY_ZEROS),
    # finds the distinct indices by unique_dim, which the operator list sends through the CPU
    "_to_sparse.sparse_dim": Domain(
        prepare=_prepare_sparse_dim, ranks=(1, 4), numbers=_MANY_ZEROS, through_cpu=frozenset({"unique_dim"})
    ),
    "_to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc": Domain(prepare=_matrix, numbers=_MANY_ZEROS),
    "_convert_indices_from_coo_to_csr": Domain(prepare=_prepare_row_indices, dtypes=_INDICES, dense_out=True),
    "_convert_indices_from_csr_to_coo": Domain(prepare=_prepare_row_offsets, dtypes=_INDICES, dense_out=True),
    "quantize_per_tensor quantize_per_tensor.tensor_qparams": _QUANTIZED,
    "quantize_per_tensor.tensors": Domain(
        prepare=_prepare_several, dtypes=(torch.float32,), arguments={"dtype": _quantized_dtype}
    ),
    "quantize_per_tensor_dynamic": Domain(
        dtypes=(torch.float32,),
        arguments={"dtype": one_of(torch.quint8, torch.qint8), "reduce_range": one_of(False, True)},
    ),
    "quantize_per_channel": Domain(
        prepare=_prepare_channels, ranks=(1, 4), dtypes=(torch.float32,), arguments={"dtype": _quantized_dtype}
    ),
    "dequantize.self": Domain(arguments={"self": _quantized}),
    "_make_per_tensor_quantized_tensor": Domain(dtypes=_STORED, arguments={"scale": _scale, "zero_point": _zero_point}),
    "_make_per_channel_quantized_tensor": Domain(prepare=_prepare_channels, ranks=(1, 4), dtypes=_STORED),
    "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned _nested_from_padded": Domain(
        prepare=_prepare_padded, dtypes=(torch.float32, torch.float64)
    ),
    "_nested_view_from_buffer": Domain(prepare=_prepare_buffer, dtypes=(torch.float32, torch.float64)),
}
