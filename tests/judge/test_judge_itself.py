"""The judge can be trusted: it finds faults, skips are strict, and what it writes can be read back."""

from __future__ import annotations

import contextlib
import json
import unittest
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.testing._internal.common_utils import TestCase

from judge import case as cases
from judge import plan, skips
from judge.case import Case, judging, name_of
from judge.conftest import crash_line
from judge.samples import Call, calls, copy_to
from judge.skips import Subject
from judge.test_op_db import compare_call
from judge.verdict import answer, is_as_near, is_random
from opgen.truth.judges import ANY_DTYPE, FILE, Journal, JudgeCounts, lines, read

DEVICE = plan.current.device
SUBJECT = Subject("op_db", "add", "forward", "float32")
KNOWN = """
- title: add is off by one on Sundays
  reason: nobody works on Sundays, so nobody has looked
  error: off by one
  covers: [{names: [add], kinds: [forward]}]
"""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The lines that tests publish."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(cases, "publish", found.append)
    return found


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with one skip."""
    monkeypatch.setattr(skips, "load", lambda: tuple(skips.read(KNOWN)))


def op(name: str) -> Any:
    return next(op for op in op_db if op.full_name == name)


# Each is what a wrong kernel might do with the right result.
FAULTS = {
    "a wrong value": lambda result: result + (torch.arange(result.numel(), device=result.device).view_as(result) == 0),
    "a wrong dtype": lambda result: result.double(),
    "a wrong shape": lambda result: result.unsqueeze(0),
    "another device": lambda result: result.cpu(),
    "no tensor": lambda result: result.tolist(),
    "two results": lambda result: (result, result),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_the_device_is_found(fault: str, written: list[dict[str, Any]]) -> None:
    add = op("add")

    def faulty(*args: Any, **kwargs: Any) -> Any:
        result = add(*args, **kwargs)
        return FAULTS[fault](result) if result.device.type != "cpu" else result

    judged = Case(SUBJECT, DEVICE, ("add",))
    call = Call(torch.ones(3, device=DEVICE), (torch.ones(3, device=DEVICE),), {})
    compare_call(TestCase(), judged, add, torch.float32, faulty, call)
    with pytest.raises(AssertionError):
        judged.close()


def test_a_refusal_of_an_essential_dtype_is_a_fault_and_of_another_is_not() -> None:
    for dtype, fails in ((torch.float32, True), (torch.complex64, False)):

        def refuse(given: torch.Tensor) -> torch.Tensor:
            if given.device.type != "cpu":
                raise RuntimeError("not implemented for this dtype")
            return given

        judged = Case(SUBJECT, DEVICE)
        call = Call(torch.ones(3, device=DEVICE, dtype=dtype), (), {})
        compare_call(TestCase(), judged, op("add"), dtype, refuse, call)
        with pytest.raises(AssertionError if fails else unittest.SkipTest, match="not implemented"):
            judged.close()


def test_an_operator_with_a_kernel_that_runs_on_the_cpu_is_a_fault() -> None:
    judged = Case(SUBJECT, DEVICE)
    judged.add([])
    judged.ran.on_cpu["add.Tensor"] += 1
    with pytest.raises(AssertionError, match=r"add\.Tensor has a kernel"):
        judged.close()


def test_a_call_that_draws_random_numbers_is_known_though_it_seeds_itself() -> None:
    def seeded() -> torch.Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(1)
            return torch.rand(3)

    assert is_random(seeded)
    assert not is_random(lambda: torch.ones(3) + 1)


def test_rounding_is_told_from_a_wrong_result_by_the_exact_one() -> None:
    exact = torch.tensor([1.0, 1e-3], dtype=torch.float64)
    on_cpu = torch.tensor([1.001, 1e-3], dtype=torch.float32)
    assert is_as_near(on_cpu, torch.tensor([0.999, 1.5e-3]), exact)
    assert not is_as_near(on_cpu, torch.tensor([0.9, 1e-3]), exact)
    assert not is_as_near(on_cpu, torch.tensor([float("nan"), 1e-3]), exact)
    assert not is_as_near(torch.tensor([1, 2]), torch.tensor([1, 3]), torch.tensor([1, 3]))
    assert not is_as_near(on_cpu, on_cpu, None)


def test_copies_keep_strides_offsets_overlaps_and_sharing() -> None:
    base = torch.arange(24.0).view(2, 3, 4)
    for view in (base.mT, base[:, 1:, ::2], base[0, 0].expand(5, 4), base.as_strided((2, 2), (1, 1), 3)):
        copied = copy_to(view, DEVICE)
        assert (copied.shape, copied.stride()) == (view.shape, view.stride())
        assert copied.storage_offset() == view.storage_offset()
        assert torch.equal(copied.cpu(), view)
    conjugate = torch.ones(2, dtype=torch.complex64).conj()
    assert copy_to(conjugate, DEVICE).is_conj()
    call = Call(base, (base,), {}).copy("cpu")
    assert call.input is call.args[0] and call.input is not base


def test_samples_are_the_same_in_every_run() -> None:
    first, second = ([call.input.cpu() for call in calls(op("lerp"), DEVICE, torch.float32)] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_chosen_samples_are_spread_over_all_of_them() -> None:
    assert plan.Plan(samples=3).chosen(range(101)) == [0, 50, 100]
    assert plan.Plan(samples=3).chosen(range(2)) == [0, 1]
    assert plan.Plan(samples=None).chosen(range(101)) == list(range(101))
    assert plan.Plan(samples=1).chosen(range(101)) == [0]


@pytest.mark.parametrize("asked", ["lerp", "lerp.Scalar", "aten::lerp_.Scalar", "lerp.Tensor_out"])
def test_an_operator_is_found_by_any_of_its_overloads(asked: str) -> None:
    wanted = plan.Plan(ops=(asked,))
    assert [op.full_name for op in op_db if wanted.wants(plan.names_of(op))] == ["lerp"]


def fail(text: str) -> None:
    with judging(Case(SUBJECT, DEVICE)):
        raise RuntimeError(text)


def test_a_known_fault_is_a_skip_with_its_title(known: None, written: list[dict[str, Any]]) -> None:
    with pytest.raises(unittest.SkipTest, match="Sundays"):
        fail("it is off by one")
    assert (written[0]["outcome"], written[0]["title"]) == ("skipped", "add is off by one on Sundays")


def test_a_skip_hides_no_other_fault(known: None, written: list[dict[str, Any]]) -> None:
    with pytest.raises(RuntimeError):
        fail("it is off by two")
    assert written[0]["outcome"] == "failed"


def test_a_skip_fails_when_it_passes(known: None, written: list[dict[str, Any]]) -> None:
    with pytest.raises(AssertionError, match="take it out"), judging(Case(SUBJECT, DEVICE)) as judged:
        judged.add([])
    assert written[0]["outcome"] == "failed"


@pytest.mark.parametrize(
    "text",
    [
        "- {title: a b c, covers: []}",
        "- {title: a b c, reason: a b c, covers: [], colour: red}",
        "- {title: a, reason: a b c, covers: []}",
        "- {title: a b c, reason: a b c, covers: [{kinds: [out]}]}",
        "- {title: a b c, reason: a b c, covers: []}\n- {title: a b c, reason: a b c, covers: []}",
    ],
)
def test_a_skip_without_title_reason_or_cover_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        skips.read(text)


def every_test() -> Iterator[Subject]:
    """Everything that is asked, of every entry."""
    for entry in op_db:
        for kind in plan.KINDS.values():
            if kind.applies(entry):
                for dtype in kind.dtypes(entry, DEVICE):
                    yield Subject("op_db", entry.full_name, kind.name, name_of(dtype))
    for info in module_db:
        for dtype in info.supported_dtypes(DEVICE):
            for question in ("forward", "gradients", "state"):
                yield Subject("module_db", info.name, question, name_of(dtype))
    for info in optim_db:
        for dtype in ("float32", "float64", "bfloat16"):
            for question in ("plain", "foreach", "fused", "capturable", "state"):
                yield Subject("optim_db", info.name, question, dtype)


def test_every_skip_is_about_tests_that_exist() -> None:
    tests = list(every_test())
    known = [skip for skip in skips.load() if skip.applies(DEVICE, torch.__version__)]
    for skip in known:
        for cover in skip.covers:
            for name in cover.names:
                one = skips.Cover(cover.judge, (name,), cover.kinds, cover.dtypes)
                assert any(one.has(test) for test in tests), f"{skip.title}: no test is covered by {one}"
    for test in tests:
        skips.find(test, DEVICE)  # raises when two skips cover it


def line(test: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {
        "test": test, "judge": "op_db", "name": "add", "kind": "forward", "dtype": "float32", "outcome": outcome,
        "reason": "wrong", "title": "", "ops": {"add.Tensor": {}, "fill_": {}}, "subjects": ["add.Tensor"], **more,
    }  # fmt: skip


def test_the_journal_is_read_by_overload_and_dtype(tmp_path: Any) -> None:
    journal = Journal(tmp_path / FILE)
    for one in (
        line("a", "failed"),
        line("b", "passed"),
        line("c", "skipped", title="known"),
        line("d", "unsupported"),
        line("e", "passed", dtype=None),
        line("a", "passed"),  # judged again
        line("f", "failed"),
    ):
        journal.add(one)
    journal.close()
    counts = read(tmp_path)
    assert counts["add.Tensor", "float32"] == JudgeCounts(2, 1, 1, "op_db add, forward: wrong")
    assert counts["fill_", "float32"] == JudgeCounts(passed=2), "what merely ran in a failing test is not to blame"
    assert counts["add.Tensor", ANY_DTYPE] == JudgeCounts(passed=1)
    assert len((tmp_path / FILE).read_text().splitlines()) == 6


def test_a_complete_run_forgets_tests_that_are_gone(tmp_path: Any) -> None:
    for tests, complete in (("ab", False), ("bc", True)):
        journal = Journal(tmp_path / FILE)
        for test in tests:
            journal.add(line(test, "passed"))
        journal.close(complete=complete)
    assert [one["test"] for one in lines(tmp_path / FILE)] == ["b", "c"]


def test_nothing_judged_is_nothing_counted_and_a_broken_file_names_its_line(tmp_path: Any) -> None:
    assert read(tmp_path) == {}
    (tmp_path / FILE).write_text(json.dumps(line("a", "passed")) + "\n{half")
    with pytest.raises(ValueError, match=f"{FILE}:2"):
        read(tmp_path)


def test_a_crash_is_a_failure_of_the_test_that_ran() -> None:
    nodeid = f"tests/judge/test_op_db.py::TestOpDbMUSA::test_forward_nn_functional_silu_{DEVICE}_float32"
    crash = crash_line(nodeid, "worker 'gw0' crashed")
    told = {key: crash[key] for key in ("judge", "kind", "name", "dtype", "outcome")}
    assert told == {
        "judge": "op_db", "kind": "forward", "name": "nn_functional_silu", "dtype": "float32", "outcome": "failed",
    }  # fmt: skip


def test_an_answer_keeps_errors_and_the_warning_of_a_resized_out() -> None:
    assert isinstance(answer(lambda: torch.ones(2) + torch.ones(3), "cpu").error, RuntimeError)
    with contextlib.suppress(RuntimeError):
        assert answer(lambda: torch.add(torch.ones(2), 1, out=torch.ones(3)), "cpu").warned
