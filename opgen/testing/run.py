"""Runs one case on one device and keeps everything that can be observed about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from opgen.testing.case import Case, Live, make_live
from opgen.testing.overload import load_overload
from opgen.testing.parts import parts


@dataclass(frozen=True)
class Outcome:
    """What a call did: its results or its error, the CPU fallbacks it took.

    ``on_host`` are the operators that the device's own ones called on the CPU, views and copies left out.
    ``warned`` holds category and text of the warnings, Python's and C++'s; ``bumped`` the paths of the tensors whose
    version counter moved, which is how autograd knows that a saved tensor was overwritten.
    """

    live: Live
    results: list[Any]
    error: Exception | None
    fallbacks: dict[str, int] = field(default_factory=dict)
    on_host: dict[str, int] = field(default_factory=dict)
    warned: tuple[tuple[str, str], ...] = ()
    bumped: frozenset[str] = frozenset()


def flatten(value: Any) -> list[Any]:
    """The leaves of what an operator returns: dense tensors, numbers, None. Other tensors come in their parts."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flatten(item)]
    if isinstance(value, Tensor):
        return parts(value)
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
    versions = {path: tensor._version for path, tensor in live.tensors.items()}
    error: Exception | None = None
    results: list[Any] = []

    counts: Any = None

    def body() -> None:
        nonlocal error, results, counts
        try:
            with torch.no_grad(), watch(), _host_work(device) as counts:
                results = flatten(call(*live.positional, **live.keywords))
            _synchronize(device)
        except Exception as raised:
            error = raised

    warned = _warnings_of(body)
    if not results and error is None:
        # overloads with a list for out= return nothing
        outs = {argument.name for argument in case.op.outs}
        results = [tensor for path, tensor in live.tensors.items() if path.partition("[")[0] in outs]
    after = fallback_counts(device)
    return Outcome(
        live=live,
        results=results,
        error=error,
        fallbacks={op: count - before.get(op, 0) for op, count in after.items() if count != before.get(op, 0)},
        on_host={op: count for op, count in getattr(counts, "on_host", {}).items() if _computes(op)},
        warned=warned,
        bumped=frozenset(path for path, tensor in live.tensors.items() if tensor._version != versions[path]),
    )


def _host_work(device: str) -> AbstractContextManager[Any]:
    """Counts what operators of the device compute on the CPU, where the device can tell."""
    module = getattr(torch, device.partition(":")[0], None)
    counter = getattr(module, "count_ops", None)
    return counter() if counter else nullcontext()


@cache
def _computes(name: str) -> bool:
    """False for views and for what moves or makes tensors."""
    op = load_overload(name)
    return op.root not in _MOVES and (not any(op.returns) or any(argument.written for argument in op.arguments))


_MOVES = frozenset({
    *("copy", "_to_copy", "to", "clone", "contiguous", "empty", "empty_like", "empty_strided", "resize", "set"),
    *("new_empty", "new_empty_strided"),
    *("_copy_from", "_copy_from_and_resize", "_local_scalar_dense", "item", "pin_memory", "_pin_memory", "is_pinned"),
})  # fmt: skip


class _Listening(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here
    """Calls a function where C++ warnings become Python's.

    A call through torch.ops prints them to stderr. PyTorch turns them into Python warnings for the calls that enter C++
    through its own bindings, and for what those call in turn; applying a function of one's own is such a call.
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[[], None]) -> None:
        """Calls it."""
        function()


def _warnings_of(function: Callable[[], None]) -> tuple[tuple[str, str], ...]:
    """Category and text of every warning; those that are given once for a process are given here, too."""
    always = torch.is_warn_always_enabled()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            _Listening.apply(function)
        finally:
            torch.set_warn_always(always)
    return tuple((warning.category.__name__, str(warning.message)) for warning in seen)


@contextmanager
def quietly() -> Iterator[None]:
    """No warnings of Python's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
