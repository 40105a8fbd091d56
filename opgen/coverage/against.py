"""What another backend has a kernel for in PyTorch's own tree, and this one has not. Pure functions.

A backend "has" an overload where native_functions.yaml names a kernel under its dispatch key for dense tensors, or the
overload is a member of a structured group whose out overload has one. Kernels that live in another repository are not
in that file: of XPU only what Intel keeps in the tree (matrix products, attention) counts, not torch-xpu-ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opgen.coverage.matrix import Overload, State, has_kernel, overload_of, vendor_only

if TYPE_CHECKING:
    from opgen.classify import Registration
    from opgen.upstream import Upstream

__all__ = ["BACKENDS", "Gap", "gap"]

BACKENDS: Mapping[str, str] = {"cuda": "CUDA", "cpu": "CPU", "mps": "MPS", "xpu": "XPU"}
"""What users say -> dispatch key."""

_NOTES = {"XPU": "only what PyTorch's own tree has for XPU: the kernels of torch-xpu-ops are registered from elsewhere"}

# Words of a name that bind an operator to one backend or its library; `_lstm_mps` is to MPS what cudnn_convolution is
# to CUDA. `_for_cpu` marks the CPU's own variant of an operator that others have under a neutral name.
_OWN = {"CPU": ("mkldnn", "_for_cpu", "_test_", "_foobar"), "MPS": ("mps",), "XPU": (), "CUDA": ()}


@dataclass(frozen=True)
class Gap:
    """The overloads that a backend has, by what this one does with them."""

    backend: str
    key: str
    has: int
    """Overloads with a kernel there, its own ones not counted."""
    own: tuple[str, ...]
    """Overloads that are that backend's own: its name or its library's is in theirs, or they serve its tests."""
    states: Mapping[State, int]
    lacking: tuple[Overload, ...]
    """Missing here, or still a skeleton."""
    on_cpu: tuple[Overload, ...]
    """Registered here, and run on the CPU."""
    note: str | None

    def as_json(self) -> dict[str, Any]:
        """What `opgen coverage --against BACKEND --format json` prints."""
        return {
            "against": self.backend,
            "key": self.key,
            "has": self.has,
            "states": {state.value: count for state, count in self.states.items()},
            "missing": [o.op for o in self.lacking],
            "cpu_fallback": [o.op for o in self.on_cpu],
            "only_there": list(self.own),
            "note": self.note,
        }


def gap(backend: str, registered: Mapping[str, Registration], upstream: Upstream) -> Gap:
    """What `backend`, a key of BACKENDS, has and we have not."""
    key = BACKENDS[backend]
    names: Sequence[str] = [op for op in upstream.names if has_kernel(op, key, upstream)]
    own = tuple(op for op in names if op in vendor_only() or any(word in op for word in _OWN[key]))
    counted = [overload_of(op, registered, upstream) for op in names if op not in set(own)]
    return Gap(
        backend=backend,
        key=key,
        has=len(counted),
        own=own,
        states={state: sum(o.state is state for o in counted) for state in State if state is not State.LOADED},
        lacking=tuple(o for o in counted if o.state in (State.MISSING, State.SKELETON)),
        on_cpu=tuple(o for o in counted if o.state is State.CPU_FALLBACK),
        note=_NOTES.get(key),
    )
