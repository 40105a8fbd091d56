"""Runs one case on one device and keeps everything that can be observed about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from opgen.testing.case import Case, Live, make_live


@dataclass(frozen=True)
class Outcome:
    """What a call did: its results or its error, the CPU fallbacks it took."""

    live: Live
    results: list[Any]
    error: Exception | None
    fallbacks: dict[str, int] = field(default_factory=dict)


def flatten(value: Any) -> list[Any]:
    """The leaves of what an operator returns: tensors, numbers, None."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flatten(item)]
    return [] if value is None else [value]


def run(
    case: Case,
    device: str,
    call: Callable[..., Any],
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Outcome:
    """Calls ``call`` with the case's arguments made anew on ``device``, inside ``watch()``."""
    live = make_live(case, device)
    before = fallback_counts(device)
    error: Exception | None = None
    results: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.no_grad(), watch():
                results = flatten(call(*live.positional, **live.keywords))
            _synchronize(device)
        except Exception as raised:
            error = raised
    after = fallback_counts(device)
    return Outcome(
        live=live,
        results=results,
        error=error,
        fallbacks={op: count - before.get(op, 0) for op, count in after.items() if count != before.get(op, 0)},
    )


def to_cpu(tensor: Tensor) -> Tensor:
    """The values on the CPU."""
    return tensor.detach().cpu()


def fallback_counts(device: str) -> Mapping[str, int]:
    """How often each operator has gone through the CPU so far; empty for a device that does not count."""
    module = getattr(torch, device.partition(":")[0], None)
    counts = getattr(module, "fallback_counts", None)
    return dict(counts()) if counts else {}


def _synchronize(device: str) -> None:
    kind = device.partition(":")[0]
    if kind != "cpu":
        # errors of asynchronous work belong to the call that started it
        getattr(torch, kind).synchronize()
