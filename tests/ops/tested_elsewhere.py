"""Operators that cannot be compared with the CPU on arguments that are drawn: tests by name hold them."""

from __future__ import annotations

TESTED_ELSEWHERE = {
    "record_stream": ("tests/ops/test_promises.py", ".record_stream(", "the CPU has no streams"),
    "dequantize.self": (
        "tests/runtime/test_quantized.py",
        ".dequantize()",
        "its argument is a quantized tensor, and what is drawn is dense",
    ),
    "_to_sparse.sparse_dim": (
        "tests/runtime/test_sparse.py",
        ".to_sparse(1)",
        "it finds the distinct indices by unique_dim, which goes through the CPU on purpose",
    ),
    "_nested_tensor_from_mask": (
        "tests/runtime/test_nested.py",
        "._nested_tensor_from_mask,",
        "it computes the sizes of the pieces on the CPU, where PyTorch keeps them, and that counts as a silent trip",
    ),
    "_nested_compute_contiguous_strides_offsets": (
        "tests/runtime/test_nested.py",
        "._nested_compute_contiguous_strides_offsets(",
        "it takes and gives tensors that PyTorch keeps on the CPU, whatever the device",
    ),
}
"""Operator -> the test file, how it stands there, and why it is not compared."""
