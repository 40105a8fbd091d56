"""What the reports show of each overload: its state, what running it has shown, and what to do about it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from opgen.coverage.matrix import Matrix, Overload, State, vendor_only
from opgen.coverage.reasons import unlisted
from opgen.truth.record import DtypeResult, Record, Verdict

if TYPE_CHECKING:
    from opgen.classify import Registration
    from opgen.upstream import Upstream

__all__ = [
    "DTYPES",
    "MEANING",
    "Row",
    "Standing",
    "by_dtype",
    "by_standing",
    "dtypes_of",
    "family_of",
    "namespace",
    "row_of",
    "row_of_loaded",
    "rows_of",
    "standing_of_loaded",
    "worst_first",
]

DTYPES: Mapping[str, str] = {
    "bool": "bool",
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
}
"""The dtypes in the order of the columns, with their short names; others follow in alphabetical order."""


class Standing(str, Enum):
    """Verdict and state on one scale, best first; what bars are drawn of."""

    STRICT = "strict"
    PARTIAL = "partial"
    FAILED = "failed"
    UNTESTED = "untested"
    MISSING = "missing"


MEANING = {
    Standing.STRICT: "every valid case agrees with the reference",
    Standing.PARTIAL: "no wrong value, but a valid case was refused or another promise broken",
    Standing.FAILED: "a wrong value, a crash or a hang",
    Standing.UNTESTED: "has a kernel, but no case could be compared",
    Standing.MISSING: "no kernel: runs on the CPU with a warning, or raises",
}


@dataclass(frozen=True)
class Row:
    """One overload."""

    op: str
    namespace: str
    """Where a user of PyTorch meets it: torch, Tensor, torch.linalg, ...; internal for names that begin with "_"."""
    state: State
    kind: str | None
    family: str | None
    source: str | None
    """`path:line` of the kernel's definition."""
    verdict: Verdict
    results: Mapping[str, DtypeResult] = field(default_factory=dict)
    """By dtype, in the order of DTYPES."""
    reason: str | None = None
    """Why the overload is not STRICT, in a sentence."""
    how: str = ""
    """How it gets its kernel, or what a call does without one."""
    next: str | None = None
    """The command to go on with."""
    provenance: str | None = None
    """How the verdict can be had again: reference, seed, commit."""

    @property
    def standing(self) -> Standing:
        if self.state in (State.MISSING, State.SKELETON):
            return Standing.MISSING
        return Standing(self.verdict.value.lower())

    def as_json(self) -> dict[str, Any]:
        """What `opgen coverage OP --format json` prints for an overload."""
        return {
            "op": self.op,
            "namespace": self.namespace,
            "state": self.state.value,
            "kind": self.kind,
            "family": self.family,
            "source": self.source,
            "verdict": self.verdict.value,
            "verdicts": {dtype: result.verdict.value for dtype, result in self.results.items()},
            "cases": {dtype: result.cases for dtype, result in self.results.items()},
            "reasons": {dtype: result.reason for dtype, result in self.results.items() if result.reason},
            "reason": self.reason,
            "how": self.how,
            "next": self.next,
        }


def rows_of(matrix: Matrix, registered: Mapping[str, Registration], upstream: Upstream) -> tuple[Row, ...]:
    """A row for each overload of the matrix, in its order; `registered` are those under the backend's dense key."""
    return tuple(row_of(overload, registered, upstream) for overload in matrix.overloads)


def row_of(overload: Overload, registered: Mapping[str, Registration], upstream: Upstream) -> Row:
    """The row of one overload, of upstream's or of our own, counted or not."""
    op, record = overload.op, overload.record
    registration = registered.get(op)
    source = overload.source
    if source is not None and registration is not None and registration.source_line is not None:
        source = f"{source}:{registration.source_line}"
    how = registration.reason if registration is not None else unlisted(op, registered, upstream)
    if overload.state is State.SKELETON:
        how = "its kernel is still to be written: a call raises NotImplementedError"
    return Row(
        op=op,
        namespace=namespace(op, upstream),
        state=overload.state,
        kind=overload.kind,
        family=overload.family,
        source=source,
        verdict=overload.verdict,
        results=_ordered(record.dtypes) if record is not None else {},
        reason=overload.reason,
        how=how,
        next=_next(op, overload.state, overload.verdict),
        provenance=_provenance(record) if record is not None else None,
    )


def row_of_loaded(record: Record) -> Row:
    """The row of an operator that no list names: what `opgen truth --load` has kept of it."""
    families = dict.fromkeys(family for result in record.dtypes.values() for family in result.families)
    files = " ".join(f"--load {path}" for path in record.loaded)
    return Row(
        op=record.op,
        namespace=record.op.partition("::")[0],
        state=State.LOADED,
        kind=None,
        family=", ".join(families) or None,
        source=", ".join(record.loaded),
        verdict=record.counted,
        results=_ordered(record.dtypes),
        reason=record.why_counted,
        how="a file that was loaded registers it",
        next=f"opgen truth {record.op} {files}",
        provenance=_provenance(record),
    )


def standing_of_loaded(record: Record) -> str:
    """Whether the files that an operator came from are as they were when it was run."""
    from opgen.truth.digest import beside

    same = record.digest == beside(record.digest.partition(" ")[0], record.loaded)
    files = " and ".join(record.loaded)
    return f"{files} {'is as it was then, what it imports may not be' if same else 'has changed since it was run'}"


def namespace(op: str, upstream: Upstream) -> str:
    """Where a user of PyTorch meets the overload."""
    if "::" in op:
        return op.partition("::")[0]
    function = upstream.functions[op]
    if function.python_module is not None:
        return "torch.nn" if function.python_module == "nn" else f"torch.{function.python_module}"
    if op.startswith("_foreach_"):
        return "torch._foreach"
    if op.startswith("_") and not op.startswith("__"):
        return "internal"
    if op.startswith("special_"):
        return "torch.special"
    return "torch" if any(variant.name == "function" for variant in function.variants) else "Tensor"


def dtypes_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The dtypes that occur, in the order of the columns."""
    seen = {dtype for row in rows for dtype in row.results}
    return (*(dtype for dtype in DTYPES if dtype in seen), *sorted(seen - DTYPES.keys()))


def by_standing(rows: Iterable[Row], key: Any) -> dict[str, Counter[Standing]]:
    """Counts by standing within each group that `key(row)` names, the largest group first."""
    groups: dict[str, Counter[Standing]] = {}
    for row in rows:
        groups.setdefault(key(row), Counter())[row.standing] += 1
    return dict(sorted(groups.items(), key=lambda item: (-item[1].total(), item[0])))


def by_dtype(rows: Iterable[Row], dtypes: Iterable[str]) -> dict[str, Counter[Standing]]:
    """For each dtype the overloads for which the device supports it, by verdict."""
    counts: dict[str, Counter[Standing]] = {dtype: Counter() for dtype in dtypes}
    for row in rows:
        for dtype, result in row.results.items():
            if dtype in counts and result.supported:
                counts[dtype][Standing(result.verdict.value.lower())] += 1
    return counts


def family_of(row: Row) -> str:
    """The family, or the state of an overload that has none."""
    return row.family or row.state.value


_WORST = (Verdict.FAILED, Verdict.PARTIAL, Verdict.UNTESTED, Verdict.STRICT)


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """FAILED, PARTIAL, UNTESTED, STRICT; within each by name."""
    return sorted(rows, key=lambda row: (_WORST.index(row.verdict), row.op))


def _ordered(dtypes: Mapping[str, DtypeResult]) -> dict[str, DtypeResult]:
    known = {dtype: dtypes[dtype] for dtype in DTYPES if dtype in dtypes}
    return {**known, **{dtype: dtypes[dtype] for dtype in sorted(dtypes.keys() - DTYPES.keys())}}


def _next(op: str, state: State, verdict: Verdict) -> str | None:
    if op in vendor_only():
        return None
    if state is State.MISSING:
        return f"opgen new {op}"
    if state is State.SKELETON or state is State.CPU_FALLBACK:
        return f"opgen explain {op}"
    return f"opgen test {op}" if verdict is not Verdict.STRICT else None


def _provenance(record: Record) -> str:
    return (
        f"compared with {record.reference}, seed {record.seed}, torch {record.torch} on {record.target}, "
        f"commit {record.commit}"
    )
