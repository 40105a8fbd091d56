"""What a chip has not: an operator may refuse a dtype that the library has no arithmetic for there."""

from __future__ import annotations

from functools import cache

import torch

# Compute capability from which the vendor's library computes in the dtype: docs/limits.md, rows double_precision,
# bfloat16 and fp8.
_SINCE = {
    torch.float64: (2, 2),
    torch.complex128: (2, 2),
    torch.bfloat16: (2, 2),
    torch.float8_e4m3fn: (3, 1),
    torch.float8_e5m2: (3, 1),
}


@cache
def computes_on_host(device: str) -> bool:
    """Whether the CPU does the work: for itself, or as the stand-in for a chip. Then it comes in one order, always."""
    kind = device.partition(":")[0]
    return kind == "cpu" or getattr(getattr(torch, kind), "target", lambda: kind)() == "host"


@cache
def lacking(device: str) -> frozenset[torch.dtype]:
    """The dtypes that the chip behind ``device`` does not compute in; none for a device other than musa."""
    if device.partition(":")[0] != "musa":
        return frozenset()
    capability = tuple(torch.musa.get_device_capability())
    return frozenset(dtype for dtype, since in _SINCE.items() if capability < since)


def refuses_for_lack(error: Exception) -> bool:
    """Whether the error is the library's way to say that it does not compute this."""
    return isinstance(error, RuntimeError) and "NOT_SUPPORTED" in str(error)
