"""Operators that cannot be compared with the CPU on arguments that are drawn: tests by name hold them."""

from __future__ import annotations

TESTED_ELSEWHERE = {
    "record_stream": ("tests/ops/test_promises.py", ".record_stream(", "the CPU has no streams"),
    "_nested_compute_contiguous_strides_offsets": (
        "tests/runtime/test_nested.py",
        "._nested_compute_contiguous_strides_offsets(",
        "it takes and gives tensors that PyTorch keeps on the CPU, whatever the device",
    ),
}
"""Operator -> the test file, how it stands there, and why it is not compared."""
