"""`opgen trace`: how what a script called is joined with the coverage, ranked, and shown."""

from __future__ import annotations

import json

import pytest
from coverage_cases import record_of
from hypothesis import given
from hypothesis import strategies as st

from opgen.tables import counted
from opgen.trace.calls import Calls, Trace
from opgen.trace.report import Called, Standing, as_json, called, head, sections
from opgen.truth.record import DtypeResult, Verdict

_calls = st.builds(
    Calls,
    st.integers(1, 10**6),
    st.floats(0, 1e3),
    st.sampled_from(["mudnn", "ported", "upstream", "cpu_fallback", "composite"]),
    st.integers(0, 9),
    st.dictionaries(st.sampled_from(["float32", "int64"]), st.integers(1, 9)),
)


def trace(error: str | None = None, **ops: Calls) -> Trace:
    return Trace("2.13.0", 2.0, True, {name.replace("__", "."): calls for name, calls in ops.items()}, error)


def joined(of: Trace, *, listed: str = "relu bincount add.Tensor", **verdicts: Verdict) -> tuple[Called, ...]:
    records = {op: record_of(op, float32=verdict) for op, verdict in verdicts.items()}
    return called(of, set(listed.split()), {"relu", "bincount", "add.Tensor", "sinc.out", "poisson"}, records)


@given(
    st.builds(
        Trace, st.text(), st.floats(0, 9), st.booleans(), st.dictionaries(st.text(), _calls), st.none() | st.text()
    )
)
def test_a_trace_survives_its_way_between_the_processes(of: Trace) -> None:
    assert Trace.from_json(of.to_json()) == of


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ops": 1}', '{"torch": ""}', '{"ops": {"a": {"x": 1}}}'])
def test_half_a_trace_is_not_taken_for_one(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        Trace.from_json(text)


def test_missing_ones_come_first_then_the_cpu_then_bad_verdicts_then_time() -> None:
    found = joined(
        trace(
            relu=Calls(1, 5.0, "mudnn", dtypes={"float32": 1}),
            linear=Calls(1, 9.0, "composite"),
            add__Tensor=Calls(1, 1.0, "mudnn", dtypes={"float32": 1}),
            tanh=Calls(1, 2.0, "mudnn", dtypes={"float32": 1}),
            bincount=Calls(1, 0.1, "cpu_fallback", on_cpu=1),
            sinc__out=Calls(3, 0.2, "cpu_fallback", on_cpu=3),
            error="NotImplementedError: The operator 'poisson' draws random numbers",
        ),
        relu=Verdict.STRICT,
        tanh=Verdict.PARTIAL,
        **{"add.Tensor": Verdict.FAILED},
    )
    assert [(c.op, c.standing) for c in found] == [
        ("poisson", Standing.RAISED),
        ("sinc.out", Standing.MISSING),
        ("bincount", Standing.ON_CPU),
        ("add.Tensor", Standing.FAILED),
        ("tanh", Standing.PARTIAL),
        ("linear", Standing.OTHER),
        ("relu", Standing.OTHER),
    ]
    commands = {c.op: c.next for c in found}
    assert commands["poisson"] == "opgen new poisson" and commands["sinc.out"] == "opgen new sinc.out"
    assert commands["bincount"] == "opgen explain bincount" and commands["relu"] is None
    assert commands["add.Tensor"] == "opgen test add.Tensor"


def test_the_verdict_is_that_of_the_dtypes_used() -> None:
    record = record_of("relu", float32=Verdict.STRICT, float16=Verdict.FAILED, int64=Verdict.UNTESTED)

    def verdict(**dtypes: int) -> tuple[Verdict, str | None]:
        (found,) = called(trace(relu=Calls(1, 0.0, "mudnn", dtypes=dtypes)), {"relu"}, {"relu"}, {"relu": record})
        return found.verdict, found.reason

    assert verdict(float32=9) == (Verdict.STRICT, None)
    assert verdict(float32=9, float16=1) == (Verdict.FAILED, "float16: float16 is off")
    assert verdict(int64=1) == verdict() == verdict(complex64=1) == (Verdict.FAILED, "float16: float16 is off")
    assert called(trace(relu=Calls(1, 0.0, "mudnn")), {"relu"}, set(), {})[0].verdict is Verdict.UNTESTED


def test_operators_of_another_library_have_no_opgen_new() -> None:
    of = trace(nms=Calls(2, 0.1, "cpu_fallback", on_cpu=2))
    (found,) = called(of, set(), set(), {})
    assert found.standing is Standing.MISSING and found.next is None
    assert "no entry can be made for it" in str(sections([found])[0])


@given(st.dictionaries(st.sampled_from(["relu", "bincount", "sinc.out", "x::y", "tanh"]), _calls))
def test_every_overload_is_in_one_section_and_shares_add_up(ops: dict[str, Calls]) -> None:
    of = Trace("2.13.0", 1.0, True, ops)
    found = joined(of, tanh=Verdict.FAILED)
    rows = [row for section in sections(found) for row in section.rows]
    assert sorted(row[0] for row in rows) == sorted(ops)
    document = json.loads(json.dumps(as_json(of, found, ["a.py"], 0)))
    assert document["totals"]["calls"] == sum(calls.calls for calls in ops.values())
    assert sum(document["totals"][s.name.lower()] for s in Standing) == len(ops)
    assert head(of, found, "a.py").startswith(f"a.py: {counted(len(ops), 'overload')}, ")


def test_top_limits_only_what_nothing_is_wrong_with() -> None:
    ops = {f"op{i}": Calls(1, float(i), "mudnn") for i in range(9)}
    ops |= {f"bad{i}": Calls(1, 0.0, "cpu_fallback", on_cpu=1) for i in range(5)}
    missing, rest = sections(called(Trace("2.13.0", 1.0, True, ops), set(), set(), {}), top=2)
    assert len(missing.rows) == 5
    assert [row[0] for row in rest.rows] == ["op8", "op7"] and "the first 2 of 9 by time" in rest.title


def test_asynchronous_launches_are_not_sold_as_kernel_time() -> None:
    of = Trace("2.13.0", 1.0, False, {"relu": Calls(1, 0.5, "mudnn")})
    assert "to launch operators" in head(of, joined(of), "a.py")


def test_a_reason_with_control_characters_does_not_reach_the_terminal() -> None:
    bad = DtypeResult(Verdict.FAILED, reason="a\x1b[31m\nb")
    (found,) = called(trace(relu=Calls(1, 0.0, "mudnn")), {"relu"}, set(), {"relu": record_of("relu", float32=bad)})
    text = str(sections([found])[0])
    assert "\x1b" not in text and len(text.splitlines()) == 3
