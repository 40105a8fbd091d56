"""Matrices and records made up for the tests of the coverage reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from opgen.backend import MUSA
from opgen.coverage.matrix import Matrix, measure
from opgen.coverage.rows import Row, rows_of
from opgen.truth.record import DtypeResult, Record, Verdict
from opgen.upstream import Upstream

NASTY = "</script><script>document.title='owned'</script><!-- <script> \u2028 ]]> & \" ' | `x` *"
"""A reason as an operand's repr could make it: whatever shows it must neither run it nor break."""


def registration(op: str, family: str | None = "mudnn", kind: str = "unstructured", key: str = "PrivateUse1") -> Any:
    """As much of a Registration as the reports look at."""
    return SimpleNamespace(
        op=op,
        dispatch_key=key,
        kind=SimpleNamespace(value=kind),
        family=family,
        unwritten=False,
        source=family and f"kernels/{family}/K.cpp",
        source_line=7,
        reason="K is our own function",
    )


def record_of(op: str, **dtypes: Verdict | DtypeResult) -> Record:
    """A record with these verdicts; those that are not STRICT have a reason."""
    results = {
        name: found
        if isinstance(found, DtypeResult)
        else DtypeResult(found, cases=20, agreed=20, reason=None if found is Verdict.STRICT else f"{name} is off")
        for name, found in dtypes.items()
    }
    return Record(op, "2.13.0", "host", "abc1234", 7, "cpu", "digest", 1.0, results, asked=20)


def surveyed(upstream: Upstream, registrations: list[Any], records: list[Record]) -> tuple[Matrix, tuple[Row, ...]]:
    """The matrix of these registrations, and its rows."""
    found = {record.op: record for record in records}
    matrix = measure(cast(Any, registrations), upstream, MUSA, found)
    return matrix, rows_of(matrix, {r.op: r for r in registrations}, upstream)


def sample(upstream: Upstream) -> tuple[Matrix, tuple[Row, ...]]:
    """One overload of each verdict and state."""
    failed = DtypeResult(Verdict.FAILED, cases=20, agreed=19, failed=1, reason=NASTY, script=f"print({NASTY!r})")
    return surveyed(
        upstream,
        [
            registration("tril.out", kind="legacy_meta"),
            registration("lerp.Scalar_out", "ported", kind="legacy"),
            registration("bincount", "cpu_fallback"),
            registration("cat", "ported"),
            registration("nonzero", "ported"),
        ],
        [
            record_of("tril.out", float32=Verdict.STRICT, int64=Verdict.STRICT, bool=Verdict.STRICT),
            record_of("lerp.Scalar_out", float32=failed, float16=Verdict.STRICT),
            record_of("bincount", int64=Verdict.STRICT),
            record_of("cat", float32=Verdict.PARTIAL, int64=Verdict.STRICT),
        ],
    )
