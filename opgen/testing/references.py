"""What stands in for operators whose own kernel on the CPU is of no use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def out_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An out= form of ``function`` for an operator whose own on the CPU takes ``out`` for what it is not.

    ``out`` or ``grad_input`` is resized and written; RuntimeError where its dtype is not the result's.
    """

    def call(*arguments: Any, **keywords: Any) -> Tensor:
        out: Tensor = keywords.pop("out" if "out" in keywords else "grad_input")
        result = function(*arguments, **keywords)
        if result.dtype != out.dtype:
            raise RuntimeError(f"Found dtype {out.dtype} but expected {result.dtype}")
        return out.resize_(result.shape).copy_(result)

    return call
