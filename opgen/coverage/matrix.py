"""The coverage matrix, from the operator list and the installed PyTorch's dispatch tables. Pure functions.

The denominator is every overload for which the installed PyTorch has a CUDA kernel, the members of structured groups
included (1,268 in 2.13.0), less the vendor-only ones, whose contract names one vendor's library (data/vendor_only.tsv).

Each overload of the denominator is in exactly one state:

========= ===========================================================================================================
native       an entry registers a kernel: muDNN, ported, our own composition, or a function reused from upstream
cpu_fallback an entry sends it through the CPU on purpose
composite    no entry, but upstream has a kernel for it that works on any device by calling other operators
skeleton     an entry names a kernel, but its source is only what `opgen new` wrote: a call raises
missing      none of these: the backend-wide boxed fallback runs it on the CPU, with a warning; views, factories and
             random operators, which cannot run there, raise
========= ===========================================================================================================

What running an overload has shown stands beside its state (`opgen.truth.record`). Registered, running without a
fallback, and right are three different numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING

from opgen.truth.record import Verdict
from opgen.upstream import COMPOSITE_KEYS

if TYPE_CHECKING:
    from opgen.backend import Backend
    from opgen.classify import Registration
    from opgen.truth.record import Record
    from opgen.upstream import Upstream

__all__ = [
    "Matrix",
    "Overload",
    "State",
    "VendorOnly",
    "cuda_overloads",
    "has_cuda_kernel",
    "has_kernel",
    "measure",
    "overload_of",
    "state_of",
    "vendor_only",
]

_REFERENCE_KEY = "CUDA"
_FALLBACK_FAMILY = "cpu_fallback"
NOT_PROBED = "not probed: `opgen truth` runs it"


class State(str, Enum):
    """What happens when the overload is called on the device."""

    NATIVE = "native"
    CPU_FALLBACK = "cpu_fallback"
    COMPOSITE = "composite"
    SKELETON = "skeleton"
    MISSING = "missing"
    LOADED = "loaded"
    """Not the project's: a file that `opgen truth --load` named registers it. Never in the matrix."""


@dataclass(frozen=True)
class Overload:
    """One row of the matrix."""

    op: str
    state: State
    kind: str | None
    """Kind of the registration; None where no entry registers the overload."""
    family: str | None
    """mudnn, ported, upstream, cpu_fallback or composite; None for a missing overload or a kernel not yet written."""
    source: str | None
    """The file that defines the kernel, relative to the project root."""
    record: Record | None = None
    """What running it has shown; None where it has not been run since something that it depends on changed."""

    @property
    def verdict(self) -> Verdict:
        """Over the dtypes that the device supports; UNTESTED where not all of them, or too few cases, were run."""
        return self.record.counted if self.record is not None else Verdict.UNTESTED

    @property
    def reason(self) -> str | None:
        """Why the verdict is not STRICT, in a sentence; None when it is."""
        return self.record.why_counted if self.record is not None else _UNTESTABLE.get(self.state, NOT_PROBED)

    def as_json(self) -> dict[str, object]:
        """One row of coverage.json. What there is no record of is null, or empty."""
        record = self.record.to_json() if self.record is not None else {}
        return {
            "op": self.op,
            "kind": self.kind,
            "family": self.family,
            "source": self.source,
            "verdict": self.verdict.value,
            "reason": self.reason,
            **{key: record.get(key) for key in _PROVENANCE},
            "calls": record.get("calls", []),
            "verdicts": record.get("dtypes", {}),
        }


_UNTESTABLE = {
    State.MISSING: "missing: no kernel for the device",
    State.SKELETON: "missing: the kernel is still to be written",
}
# Fields of a record that its row has, too, under the same names; PyTorch's release stands above all rows.
_PROVENANCE = ("reference", "seed", "asked", "complete", "target", "commit", "digest", "seconds")


@dataclass(frozen=True)
class VendorOnly:
    """An overload that is left out of the denominator, and why."""

    op: str
    library: str
    reason: str


@dataclass(frozen=True)
class Matrix:
    """The state of every overload in the denominator."""

    torch_version: str
    """The release alone (`2.13.0`): how its wheel was built changes nothing here."""
    overloads: tuple[Overload, ...]
    vendor_only: tuple[VendorOnly, ...]

    @property
    def denominator(self) -> int:
        return len(self.overloads)

    def count(self, state: State) -> int:
        return sum(overload.state is state for overload in self.overloads)

    def totals(self) -> dict[str, int]:
        """native + cpu_fallback = registered; registered + composite + missing = denominator: a
        skeleton is no kernel yet, so it counts as missing. strict + partial + failed + untested = denominator, too."""
        native, fallback = self.count(State.NATIVE), self.count(State.CPU_FALLBACK)
        return {
            "registered": native + fallback,
            "native": native,
            "composite": self.count(State.COMPOSITE),
            "cpu_fallback": fallback,
            "missing": self.count(State.MISSING) + self.count(State.SKELETON),
            "vendor_only": len(self.vendor_only),
            **{verdict.value.lower(): n for verdict, n in self.by_verdict().items()},
        }

    def by_verdict(self) -> dict[Verdict, int]:
        """Overloads by verdict, best first; together they are the denominator."""
        counts = Counter(o.verdict for o in self.overloads)
        return {verdict: counts[verdict] for verdict in Verdict}

    def by_family(self) -> dict[str, int]:
        """Registered overloads by kernel family, most first."""
        registered = (o for o in self.overloads if o.state in (State.NATIVE, State.CPU_FALLBACK))
        return dict(Counter(o.family or "no source" for o in registered).most_common())

    def by_kind(self) -> dict[str, int]:
        """Registered overloads by kind, most first."""
        return dict(Counter(o.kind for o in self.overloads if o.kind is not None).most_common())

    def as_json(self) -> dict[str, object]:
        """What `opgen coverage --format json` prints; `verdicts` maps dtypes to what running the overload has shown."""
        return {
            "torch": self.torch_version,
            "denominator": self.denominator,
            "totals": self.totals(),
            "overloads": [overload.as_json() for overload in self.overloads],
        }


@cache
def vendor_only() -> Mapping[str, VendorOnly]:
    """The vendor-only overloads of every supported PyTorch, by name."""
    text = resources.files("opgen").joinpath("data/vendor_only.tsv").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {op: VendorOnly(op, library, reason) for op, library, reason in lines}


def cuda_overloads(upstream: Upstream) -> tuple[str, ...]:
    """Every overload with a CUDA kernel, sorted.

    Those in CUDA's dispatch table, and the functional and in-place members of structured groups, which share their out
    overload's kernel.
    """
    return tuple(op for op in upstream.names if has_cuda_kernel(op, upstream))


def measure(
    registrations: Iterable[Registration],
    upstream: Upstream,
    backend: Backend,
    records: Mapping[str, Record] = MappingProxyType({}),
) -> Matrix:
    """The matrix for these registrations (those under the backend's dense key count), with what running the overloads
    has shown. Whether `records` still hold is for the caller to say."""
    registered = {r.op: r for r in registrations if r.dispatch_key == backend.dispatch_key}
    excluded = vendor_only()
    counted = cuda_overloads(upstream)
    return Matrix(
        torch_version=upstream.torch_version.partition("+")[0],
        overloads=tuple(
            replace(overload_of(op, registered, upstream), record=records.get(op))
            for op in counted
            if op not in excluded
        ),
        vendor_only=tuple(excluded[op] for op in counted if op in excluded),
    )


def state_of(op: str, registrations: Iterable[Registration], upstream: Upstream, backend: Backend) -> State:
    """The state of any of upstream's overloads, whether it is counted or not."""
    mine = {r.op: r for r in registrations if r.dispatch_key == backend.dispatch_key}
    return overload_of(op, mine, upstream).state


def has_cuda_kernel(op: str, upstream: Upstream) -> bool:
    """Whether the overload, or the out overload that it delegates to, has a kernel for CUDA."""
    return has_kernel(op, _REFERENCE_KEY, upstream)


def has_kernel(op: str, key: str, upstream: Upstream) -> bool:
    """Whether the overload, or the out overload that it delegates to, has a kernel under a dispatch key."""
    if upstream.kernel(op, key) is not None:
        return True
    delegate = upstream.functions[op].structured_delegate
    return delegate is not None and upstream.kernel(str(delegate), key) is not None


def overload_of(op: str, registered: Mapping[str, Registration], upstream: Upstream) -> Overload:
    """The state of one overload, counted or not; `registered` are the registrations under the backend's dense key."""
    registration = registered.get(op)
    if registration is not None and registration.unwritten:
        return Overload(op, State.SKELETON, None, None, registration.source)
    if registration is not None:
        on_cpu = registration.family == _FALLBACK_FAMILY
        state = State.CPU_FALLBACK if on_cpu else State.NATIVE
        return Overload(op, state, registration.kind.value, registration.family, registration.source)
    if op in upstream.functions and _is_composite(op, registered, upstream):
        return Overload(op, State.COMPOSITE, None, "composite", None)
    return Overload(op, State.MISSING, None, None, None)


def _is_composite(op: str, registered: Mapping[str, Registration], upstream: Upstream) -> bool:
    if any(upstream.kernel(op, key) is not None for key in COMPOSITE_KEYS):
        return True
    # For the functional and in-place members of structured groups PyTorch generates a kernel that allocates the result
    # and calls the out overload, on any device: it is worth as much as the out overload is.
    delegate = upstream.functions[op].structured_delegate
    return delegate is not None and str(delegate) in registered
