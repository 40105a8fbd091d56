"""Verdicts and records: what they say, and that nothing is lost on the way through JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
