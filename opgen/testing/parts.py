"""Takes tensors that are not dense apart, so that what is compared is dense tensors and numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def parts(tensor: Tensor) -> list[Any]:
    """What a result is made of: itself where it is dense.

    A sparse one is its sizes, indices and values, a quantized one its integers, scales and zero points, a nested one
    its pieces with their places in memory. What PyTorch keeps on the CPU on every device comes as numbers. Values keep
    their gradients.
    """
    if tensor.is_nested:
        where = (tensor._nested_tensor_size(), tensor._nested_tensor_strides(), tensor._nested_tensor_storage_offsets())
        return [*(number for held in where for number in held.flatten().tolist()), *tensor.unbind()]
    if tensor.is_quantized:
        return [_QSCHEMES.index(tensor.qscheme()), tensor.int_repr(), *_parameters(tensor)]
    if tensor.layout == torch.sparse_coo:
        indices, values = tensor._indices(), tensor.values() if tensor.is_coalesced() else tensor._values()
        return [*tensor.shape, tensor.sparse_dim(), tensor.is_coalesced(), indices, values]
    if tensor.layout in _BY_ROWS:
        return [
            *tensor.shape,
            _LAYOUTS.index(tensor.layout),
            tensor.crow_indices(),
            tensor.col_indices(),
            tensor.values(),
        ]
    if tensor.layout in _LAYOUTS:
        return [
            *tensor.shape,
            _LAYOUTS.index(tensor.layout),
            tensor.ccol_indices(),
            tensor.row_indices(),
            tensor.values(),
        ]
    return [tensor]


def _parameters(tensor: Tensor) -> list[Any]:
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return [tensor.q_scale(), tensor.q_zero_point()]
    return [tensor.q_per_channel_axis(), tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()]


_QSCHEMES = (
    torch.per_tensor_affine,
    torch.per_channel_affine,
    torch.per_tensor_symmetric,
    torch.per_channel_symmetric,
    torch.per_channel_affine_float_qparams,
)
_BY_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_LAYOUTS = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
