"""What a call of an overload does that no entry registers for dense tensors, in words."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from opgen.upstream import COMPOSITE_KEYS

if TYPE_CHECKING:
    from opgen.upstream import Upstream

__all__ = ["unlisted"]


def unlisted(op: str, registered: Container[str], upstream: Upstream) -> str:
    """What PyTorch does with `op`, an overload of upstream's, where only the overloads `registered` have kernels."""
    if any(upstream.kernel(op, key) is not None for key in COMPOSITE_KEYS):
        return "PyTorch's own kernel calls other operators"
    function = upstream.functions[op]
    delegate = function.structured_delegate
    if delegate is not None and str(delegate) in registered:
        return f"PyTorch allocates the result and calls {delegate}"
    tensorless = not any(a.type.is_tensor_like() for a in function.func.arguments.flat_all)
    if function.is_view_op or tensorless or function.func.arguments.has_generator_arg():
        return "raises, as it cannot run on the CPU instead"
    return "runs on the CPU, with a warning"
