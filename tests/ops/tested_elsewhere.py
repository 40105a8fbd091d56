"""Operators that tests by name hold: tensors drawn at random are no arguments for them, or the CPU lacks them."""

from __future__ import annotations

_SPARSE = "tests/runtime/test_sparse.py"
_QUANTIZED = "tests/runtime/test_quantized.py"
_NESTED = "tests/runtime/test_nested.py"

TESTED_ELSEWHERE = {
    # the CPU's kernel crashes when out= is not of the result's size, dtype and layout already
    "rrelu_with_noise.out": ("tests/ops/test_modules.py", ".rrelu_with_noise.out("),
    "record_stream": ("tests/ops/test_promises.py", ".record_stream("),
    "_to_sparse": (_SPARSE, ".to_sparse(layout=layout"),
    "_to_sparse.sparse_dim": (_SPARSE, ".to_sparse(1)"),
    "_to_sparse_csr": (_SPARSE, ".to_sparse(layout=layout"),
    "_to_sparse_csc": (_SPARSE, ".to_sparse(layout=layout"),
    "_to_sparse_bsr": (_SPARSE, ".to_sparse(layout=layout"),
    "_to_sparse_bsc": (_SPARSE, ".to_sparse(layout=layout"),
    "_convert_indices_from_coo_to_csr": (_SPARSE, "._convert_indices_from_coo_to_csr("),
    "_convert_indices_from_coo_to_csr.out": (_SPARSE, "_convert_indices_from_coo_to_csr(x, 7, out=out"),
    "_convert_indices_from_csr_to_coo": (_SPARSE, "._convert_indices_from_csr_to_coo("),
    "_convert_indices_from_csr_to_coo.out": (_SPARSE, "_convert_indices_from_csr_to_coo(x, y, out=out"),
    "quantize_per_tensor": (_QUANTIZED, ".quantize_per_tensor("),
    "quantize_per_tensor.tensor_qparams": (_QUANTIZED, ".quantize_per_tensor(x, scale, zero"),
    "quantize_per_tensor.tensors": (_QUANTIZED, ".quantize_per_tensor([x, x]"),
    "quantize_per_tensor_dynamic": (_QUANTIZED, ".quantize_per_tensor_dynamic("),
    "quantize_per_channel": (_QUANTIZED, ".quantize_per_channel("),
    "_make_per_tensor_quantized_tensor": (_QUANTIZED, "._make_per_tensor_quantized_tensor("),
    "_make_per_channel_quantized_tensor": (_QUANTIZED, "._make_per_channel_quantized_tensor("),
    "dequantize.self": (_QUANTIZED, ".dequantize()"),
    "_nested_view_from_buffer": (_NESTED, "._nested_view_from_buffer("),
    "_nested_tensor_from_mask": (_NESTED, "._nested_tensor_from_mask,"),
    "_nested_tensor_from_mask_left_aligned": (_NESTED, "._nested_tensor_from_mask_left_aligned("),
    "_nested_from_padded": (_NESTED, "._nested_from_padded("),
    "_nested_compute_contiguous_strides_offsets": (_NESTED, "._nested_compute_contiguous_strides_offsets("),
}
"""Operator -> the test file, and how it stands there."""
