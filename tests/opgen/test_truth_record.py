"""Verdicts and records: what they say, and that nothing is lost on the way through JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opgen.truth.judged import with_databases
from opgen.truth.record import DtypeResult, Record, Verdict, worst

counts = st.integers(0, 1000)
results = st.builds(
    DtypeResult,
    verdict=st.sampled_from(Verdict),
    cases=counts,
    agreed=counts,
    refused=counts,
    unsupported=counts,
    discarded=counts,
    failed=counts,
    gradients=counts,
    judged=counts,
    judge_failed=counts,
    families=st.dictionaries(st.sampled_from(["mudnn", "ported"]), st.integers(1, 9)),
    reason=st.none() | st.text(min_size=1),
    script=st.none() | st.text(min_size=1),
)
records = st.builds(
    Record,
    op=st.text(min_size=1),
    torch=st.just("2.13.0"),
    target=st.just("host"),
    commit=st.just("abc"),
    seed=counts,
    reference=st.just("cpu"),
    digest=st.text(),
    seconds=st.floats(0, 1e6),
    dtypes=st.dictionaries(st.sampled_from(["float32", "int64"]), results),
    reason=st.none() | st.text(min_size=1),
    asked=counts,
    complete=st.booleans(),
    calls=st.lists(st.text()).map(tuple),
)


@given(records)
def test_a_record_survives_json(record: Record):
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.parametrize("verdict", Verdict)
def test_an_untested_dtype_never_hides_what_another_has_shown(verdict: Verdict):
    assert worst([verdict, Verdict.UNTESTED]) is verdict


def test_the_worst_verdict_counts():
    assert worst([Verdict.STRICT, Verdict.FAILED, Verdict.PARTIAL]) is Verdict.FAILED
    assert worst([]) is Verdict.UNTESTED


def test_a_dtype_that_the_device_refuses_by_name_is_no_fault_of_the_overload():
    lacking = DtypeResult(Verdict.UNTESTED, cases=20, unsupported=18, refused=2)
    right = DtypeResult(Verdict.STRICT, cases=20, agreed=20)
    record = Record("add.Tensor", "2.13.0", "host", "abc", 0, "cpu", "", 1.0, {"float64": lacking, "float32": right})
    assert not lacking.supported
    assert record.verdict is Verdict.STRICT


def test_the_reason_is_that_of_the_dtypes_which_decided():
    right = DtypeResult(Verdict.STRICT, cases=20, agreed=20)
    refuses = DtypeResult(Verdict.PARTIAL, cases=20, agreed=19, failed=1, reason="refuses what is empty")
    wrong = DtypeResult(Verdict.FAILED, cases=20, agreed=19, failed=1, reason="wrong values")
    record = Record("x", "2.13.0", "host", "abc", 0, "cpu", "", 1.0)
    assert record.why == "nothing was run"
    assert replace(record, dtypes={"float32": right}).why is None
    assert replace(record, dtypes={"float32": wrong}).why == "wrong values"
    assert replace(record, dtypes={"float32": refuses, "int64": wrong, "bool": right}).why == "int64: wrong values"
    lacking = DtypeResult(Verdict.UNTESTED, cases=20, unsupported=20)
    assert replace(record, dtypes={"bool": lacking}).why == "the device supports none of its dtypes"
    assert replace(record, reason="missing: no kernel").why == "missing: no kernel"


@dataclass(frozen=True)
class Counts:
    """What the databases have shown, as opgen.truth.judges has it."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    first_reason: str | None = None


def judged(results: dict[str, DtypeResult], counts: dict[str, Counts]) -> Record:
    record = Record("x", "2.13.0", "host", "abc", 0, "cpu", "", 1.0, results)
    found = with_databases({"x": record, "y": replace(record, op="y")}, {("x", d): c for d, c in counts.items()})
    assert found["y"].dtypes == results
    assert with_databases(found, {("x", d): c for d, c in counts.items()}) == found  # once more is no more
    return found["x"]


def test_the_databases_can_only_make_a_verdict_worse():
    right = DtypeResult(Verdict.STRICT, cases=20, agreed=20)
    lacking = DtypeResult(Verdict.UNTESTED, cases=20, unsupported=20)
    passed = judged({"float64": lacking, "float32": right}, {"float32": Counts(passed=7), "": Counts(passed=2)})
    assert (passed.verdict, passed.dtypes["float32"].judged, passed.dtypes["float64"].judged) == (Verdict.STRICT, 9, 0)
    known = judged({"float32": right}, {"float32": Counts(7, 0, 1, "op_db x, out: warns")})
    assert (known.verdict, known.why) == (Verdict.PARTIAL, "known: op_db x, out: warns")
    wrong = judged({"float32": right, "int64": right}, {"": Counts(7, 1, 1, "op_db x, errors: accepts")})
    assert (wrong.verdict, wrong.why) == (Verdict.FAILED, "float32: op_db x, errors: accepts")
    assert wrong.dtypes["float32"].judge_failed == 2 and wrong.dtypes["int64"].judge_failed == 0
    worse = replace(right, verdict=Verdict.FAILED, reason="crashed")
    assert judged({"float32": worse}, {"float32": Counts(skipped=1)}).why == "crashed"
    assert judged({"float32": right}, {"bool": Counts(failed=1)}).dtypes == {"float32": right}
