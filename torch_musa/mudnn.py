"""torch.backends.mudnn: switches of the muDNN library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.backends import ContextProp, PropModule

from torch_musa import _backend

_C = _backend.extension()


def is_available() -> bool:
    """Whether muDNN can be used: whenever there is a musa device."""
    return bool(_C._device_count() > 0)


def version() -> int:
    """muDNN's version, 3300 for 3.3.0."""
    return int(_C._mudnn_version())


@contextmanager
def flags(allow_tf32: bool = False) -> Iterator[None]:
    """Sets the switches inside the block and puts the old values back after it."""
    before = _C._get_allow_tf32()
    _C._set_allow_tf32(bool(allow_tf32))
    try:
        yield
    finally:
        _C._set_allow_tf32(before)


class _MudnnModule(PropModule):
    # One switch for matrix products and convolutions, unlike CUDA's two. Off: float32 computes in float32.
    allow_tf32 = ContextProp(_C._get_allow_tf32, _C._set_allow_tf32)


# The name that MUSA code uses. Added the way an import of a submodule would add it; nothing of torch's is replaced.
_module = _MudnnModule(sys.modules[__name__], "torch.backends.mudnn")
sys.modules["torch.backends.mudnn"] = _module
torch.backends.mudnn = _module  # type: ignore[attr-defined]
