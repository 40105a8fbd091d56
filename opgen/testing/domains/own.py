"""Operators that PyTorch lacks: what they are compared with, in plain PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Build, Domain
from opgen.testing.tensors import FLOATING


def swiglu(input: Tensor) -> Tensor:
    """silu of the first half of the last dim times the second half, computed in float32 or wider."""
    if input.dim() == 0 or input.size(-1) % 2:
        raise RuntimeError("swiglu needs an even last dimension")
    gate, up = input.chunk(2, -1)
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    return (torch.nn.functional.silu(gate.to(wide)) * up.to(wide)).to(input.dtype)


def _prepare_swiglu(build: Build) -> dict[str, Any]:
    """An even last dim, but for one case in eight."""
    shape = list(build.shape)
    if shape and not build.maybe(8):
        shape[-1] *= 2
    return {"input": build.tensor(shape)}


TABLE = {
    "musa::swiglu": Domain(prepare=_prepare_swiglu, reference=swiglu, dtypes=FLOATING),
}
