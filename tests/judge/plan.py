"""What the judge runs: which tests of the databases, on which device, with how many samples. conftest.py sets it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")

# One test in so many is in the sample that `make test` takes.
_SHARE = 16
# float32, int64 and complex64 stand for their kinds wherever the dtype does not change the path that a call takes.
_FEW = frozenset({torch.float32, torch.int64, torch.complex64})


@dataclass(frozen=True)
class Plan:
    """One run of the judge."""

    device: str = "musa"
    ops: tuple[str, ...] = ()
    """Only what these names stand for: of an entry of a database, or of an operator ("lerp", "lerp.Scalar")."""
    sampled: bool = False
    """Only one test in sixteen, the same ones in every run."""
    samples: int | None = 8
    """Sample inputs per test, None for all that PyTorch has. JUDGE_SAMPLES overrides."""

    def wants(self, names: Iterable[str]) -> bool:
        """True when an entry known under ``names`` is to be judged."""
        if not self.ops:
            return True
        known = {_plain(name) for name in names}
        return any(_plain(op) in known for op in self.ops)

    def takes(self, test: str) -> bool:
        """True when the test of that name is run."""
        return not self.sampled or zlib.crc32(test.encode()) % _SHARE == 0

    def chosen(self, items: Iterable[Item]) -> list[Item]:
        """At most `samples` of the items, spread over all of them: the last ones are seldom like the first."""
        everything = list(items)
        if self.samples is None or len(everything) <= self.samples:
            return everything
        step = (len(everything) - 1) / max(self.samples - 1, 1)
        return [everything[round(at * step)] for at in range(self.samples)]


def samples_asked() -> int | None:
    """JUDGE_SAMPLES: a number, or "all"."""
    text = os.environ.get("JUDGE_SAMPLES", "8")
    return None if text == "all" else int(text)


def _plain(name: str) -> str:
    """What "aten::lerp_.Scalar", "lerp.Scalar" and "lerp" have in common: the databases do not go by overload."""
    base = name.rpartition("::")[2]
    first, _, rest = base.partition(".")
    dotted_namespace = first in ("nn", "linalg", "fft", "special", "masked", "sparse", "ops", "signal", "_refs")
    base = name.rpartition(".")[2] if dotted_namespace and rest else first
    return base.removesuffix("_") if not base.endswith("__") else base


@dataclass(frozen=True)
class Kind:
    """A question that is asked of every OpInfo to which it applies."""

    name: str
    dtypes: Callable[[Any, str], set[torch.dtype | None]]
    applies: Callable[[Any], bool] = field(default=lambda op: True)


def _few(op: Any, device: str) -> set[torch.dtype | None]:
    return set(op.supported_dtypes(device)) & _FEW


def _no_dtype(op: Any, device: str) -> set[torch.dtype | None]:
    return {None}


def _backward(*wanted: torch.dtype) -> Callable[[Any, str], set[torch.dtype | None]]:
    return lambda op, device: set(op.supported_backward_dtypes(device)) & set(wanted)


KINDS = {
    kind.name: kind
    for kind in (
        # PyTorch knows no dtypes of its own for a PrivateUse1 device and gives the CPU's, which the reference needs
        Kind("forward", lambda op, device: set(op.supported_dtypes(device))),
        Kind("noncontiguous", _few),
        Kind("out", _few, lambda op: op.supports_out),
        Kind("inplace", _few, lambda op: op.get_inplace() is not None),
        Kind("errors", _no_dtype, lambda op: op.error_inputs_func is not None),
        Kind(
            "gradients",
            _backward(torch.float32, torch.complex64, torch.bfloat16),
            lambda op: op.supports_autograd,
        ),
        Kind("gradcheck", _backward(torch.float64), lambda op: op.supports_autograd),
        Kind("dtypes", _no_dtype),
    )
}

current = Plan()


def configure(plan: Plan) -> None:
    """Sets the plan of this process; before the test modules are imported."""
    global current
    current = plan


def names_of(op: Any) -> list[str]:
    """Everything that an OpInfo is known by."""
    aliases = [alias.name for alias in op.aliases]
    return [name for name in (op.name, op.aten_name, op.aten_backward_name, *aliases) if name]


def ops_for(kind: str, op_db: Sequence[Any]) -> list[Any]:
    """The OpInfos of which that question is asked in this run."""
    return [op for op in op_db if KINDS[kind].applies(op) and current.wants(names_of(op))]
