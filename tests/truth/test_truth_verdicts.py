"""Every way an operator can go wrong is a verdict, and the next one is run all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opgen.cli import main, opgen
from opgen.diagnostics import OpgenError
from opgen.truth import pool
from opgen.truth.databases import Answer, asked, read_report
from opgen.truth.pool import answers
from opgen.truth.probe import Task

OPERATORS = str(Path(__file__).with_name("operators.py"))
DTYPES = ("float32", "float64", "int64")
NAMES = ("crashes", "breaks_the_cpu", "wrong", "aborts", "ends", "hangs", "refuses", "lacks", "falls_back", "right")
REFUSED = ("takes_what_the_cpu_refuses", "refuses_what_the_cpu_refuses")


def task(op: str, **rest: Any) -> Task:
    return Task(op=op, cases=12, dtypes=DTYPES, timeout=2, load=(OPERATORS,), **rest)


# PyTorch's own, with what the dispatcher or autograd shows of them
OTHERS = (
    Task("truthtest::nowhere"),
    Task("record_stream"),
    Task("lerp.Scalar", cases=8, dtypes=("float32",)),
    Task("add.Tensor", cases=8, dtypes=("float32",)),
    Task("_foreach_abs", cases=8, dtypes=("float32",)),
    Task("sin", cases=10, dtypes=("float32", "int64"), gradients=True),
)


WITH_OPTIONS = (
    Task("linalg_qr", cases=8, dtypes=("float32",), fallback=True),
    task("truthtest::wrong_gradient", gradients=True),
)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What one fork server says of all of them, in turn."""
    tasks = [*(task(f"truthtest::{name}") for name in (*NAMES, *REFUSED)), *OTHERS, *WITH_OPTIONS]
    return {answer["op"].removeprefix("truthtest::"): answer for answer in answers(tasks, 1)}


def verdicts(answer: dict[str, Any]) -> list[str]:
    return [answer["dtypes"][dtype]["verdict"] for dtype in DTYPES]


def test_a_right_operator_is_strict_and_names_what_it_was_compared_with(found: dict[str, Any]) -> None:
    right = found["right"]
    assert verdicts(right) == ["STRICT"] * 3 and right["reference"] == "cpu" and right["reason"] is None
    one = right["dtypes"]["float32"]
    assert one["cases"] == one["agreed"] == 12 and one["failed"] == 0 and one["reason"] is one["script"] is None
    assert right["seconds"] > 0 and {"truthtest::right", "neg"} <= set(right["calls"])


def test_a_crash_is_a_verdict_with_the_case_that_crashed_and_other_dtypes_are_run(found: dict[str, Any]) -> None:
    crashes = found["crashes"]
    assert verdicts(crashes) == ["STRICT", "FAILED", "STRICT"]
    one = crashes["dtypes"]["float64"]
    assert one["reason"].startswith(f"crashed with SIGSEGV in case {one['cases']}")
    assert "torch.ops.truthtest.crashes.default" in one["script"] and "dtype=torch.float64" in one["script"]


def test_the_script_of_a_crash_crashes(found: dict[str, Any]) -> None:
    script = found["crashes"]["dtypes"]["float64"]["script"]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -11, done.stderr


def test_what_a_process_says_last_is_told(found: dict[str, Any]) -> None:
    one = found["aborts"]["dtypes"]["float32"]
    assert one["verdict"] == "FAILED" and "crashed with SIGABRT in case 1: the kernel's last words" in one["reason"]
    assert found["ends"]["dtypes"]["float32"]["reason"].startswith("ended its process with status 3 in case 1")


def test_a_hang_is_a_verdict(found: dict[str, Any]) -> None:
    assert verdicts(found["hangs"]) == ["STRICT", "STRICT", "FAILED"]
    assert found["hangs"]["dtypes"]["int64"]["reason"] == "no answer within 2 s in case 1"
    assert "truthtest.hangs" in found["hangs"]["dtypes"]["int64"]["script"]


def test_a_wrong_value_fails_and_a_refusal_or_a_fallback_is_partial(found: dict[str, Any]) -> None:
    assert verdicts(found["wrong"]) == ["FAILED"] * 3
    one = found["wrong"]["dtypes"]["float32"]
    assert one["reason"].startswith(f"wrong value in {one['failed']} of 12 cases: ") and one["agreed"] > 0
    assert verdicts(found["refuses"]) == ["PARTIAL"] * 3
    assert "too large for me" in found["refuses"]["dtypes"]["float32"]["reason"]
    assert verdicts(found["falls_back"]) == ["PARTIAL"] * 3
    assert "silent CPU fallback" in found["falls_back"]["dtypes"]["float32"]["reason"]
    assert "cpu_fallback" in found["falls_back"]["dtypes"]["float32"]["families"]


def test_a_dtype_that_the_device_lacks_is_untested_and_no_fault(found: dict[str, Any]) -> None:
    assert verdicts(found["lacks"]) == ["STRICT", "UNTESTED", "STRICT"]
    assert found["lacks"]["dtypes"]["float64"]["reason"] == "the device lacks the dtype"


def test_a_fallback_on_purpose_is_none_that_is_silent(found: dict[str, Any]) -> None:
    one = found["linalg_qr"]["dtypes"]["float32"]
    assert (one["verdict"], one["families"]) == ("STRICT", {"cpu_fallback": 8})


def test_what_cannot_be_run_has_a_reason(found: dict[str, Any]) -> None:
    assert "no operator overload truthtest::nowhere" in found["nowhere"]["failure"]["message"]
    stream = found["record_stream"]
    assert stream["reason"].startswith("no arguments can be drawn for it: ") and not stream["dtypes"]
    assert stream["failure"] is None
    reason = found["breaks_the_cpu"]["reason"]
    assert reason == "the reference, while its dtypes are tried: crashed with SIGABRT"


def test_a_dtype_that_the_cpu_refuses_is_a_fault_where_the_device_takes_it(found: dict[str, Any]) -> None:
    assert list(found["refuses_what_the_cpu_refuses"]["dtypes"]) == ["float32", "float64"]
    one = found["takes_what_the_cpu_refuses"]["dtypes"]["int64"]
    assert (one["verdict"], one["failed"], one["cases"]) == ("PARTIAL", 4, 4)
    assert "accepts what the CPU refuses with TypeError: floating numbers only" in one["reason"]


def test_the_family_is_that_of_the_kernels_that_ran(found: dict[str, Any]) -> None:
    """A registered overload counts itself, a composite one what it is made of."""
    families = {op: found[op]["dtypes"]["float32"]["families"] for op in ("lerp.Scalar", "add.Tensor", "_foreach_abs")}
    assert families["lerp.Scalar"] == {"ported": 8} and families["add.Tensor"] == {"mudnn": 8}
    assert set(families["_foreach_abs"]) == {"mudnn"}


def test_gradients_are_part_of_the_verdict(found: dict[str, Any]) -> None:
    dtypes = found["sin"]["dtypes"]
    assert dtypes["float32"]["gradients"] > 0 == dtypes["int64"]["gradients"]
    assert verdicts(found["wrong_gradient"]) == ["FAILED", "FAILED", "STRICT"]
    one = found["wrong_gradient"]["dtypes"]["float64"]
    assert one["reason"].startswith("backward, wrong gradient in ") and "torch.autograd.grad" in one["script"]
    assert one["failed"] > 0 and one["agreed"] == 12


def test_a_server_that_is_killed_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who kills it is no matter: the task is tried once more, then said to be what it is, and the next one is run."""
    culprit = tmp_path / "culprit.py"
    culprit.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    bad = Task("neg", cases=2, dtypes=("float32",), load=(str(culprit),))
    found = list(answers([bad, Task("abs", cases=2, dtypes=("float32",))], 1))
    assert [answer["op"] for answer in found] == ["neg", "abs"]
    assert (
        "was killed, twice" in found[0]["failure"]["message"] and found[1]["dtypes"]["float32"]["verdict"] == "STRICT"
    )


def test_a_server_that_does_not_start_is_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no PyTorch today')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{pool.__file__.partition('/opgen/')[0]}")
    with pytest.raises(OpgenError, match="does not start: ImportError: no PyTorch today"):
        list(answers([Task("neg")], 2))


def test_without_a_build_nothing_is_run_and_nothing_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCH_MUSA_BUILD_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        main(["test", "neg", "--no-build", "--no-judge"])
    assert stopped.value.code == 1 and "has no device 'musa'" in capfd.readouterr().err


# ---- the verb


def run(*arguments: str) -> Any:
    return CliRunner().invoke(opgen, ["test", "--no-build", "--no-judge", *arguments], catch_exceptions=False)


def test_opgen_test_shows_a_row_for_each_overload_and_dtype() -> None:
    result = run("lerp.Scalar", "--cases", "4", "--dtype", "float32", "--dtype", "torch.float64")
    assert result.exit_code == 0, result.output
    rows = [line.split()[:3] for line in result.stdout.splitlines()]
    for op in ("lerp.Scalar", "lerp_.Scalar", "lerp.Scalar_out"):
        assert [op, "float32", "STRICT"] in rows and [op, "float64", "STRICT"] in rows
    assert "ported" in result.stdout


def test_opgen_test_of_a_wrong_operator_shows_how_to_reproduce_it_and_ends_with_1() -> None:
    result = run("truthtest::wrong", "--load", OPERATORS, "--cases", "12", "--dtype", "float32")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout and "To reproduce:" in result.stdout
    assert "torch.ops.truthtest.wrong.default" in result.stdout


def test_what_is_run_with_loaded_operators_holds_for_nobody_else() -> None:
    from opgen.truth.campaign import Settings, campaign
    from opgen.truth.digest import holds
    from opgen.truth.session import open_session, select

    session = open_session()
    settings = Settings(cases=2, dtypes=("float32",), load=(OPERATORS,))
    planned = select(session, ["neg"], loaded=True)
    (plain,) = campaign(planned, replace(settings, load=()), session.digests, session.project.root)
    (loaded,) = campaign(planned, settings, session.digests, session.project.root)
    assert holds(plain.record, session.digests) and plain.unkept is None
    assert loaded.record.digest != plain.record.digest and "operators were loaded beside it" in str(loaded.unkept)
    assert loaded.record.dtypes["float32"].verdict.value == "STRICT"


def test_opgen_test_as_json() -> None:
    result = run("neg_", "--cases", "3", "--dtype", "float32", "--format", "json")
    document = json.loads(result.stdout)
    records = {record["op"]: record["verdict"] for record in document["records"]}
    assert result.exit_code == 0 and document["databases"] is None
    assert records == dict.fromkeys(("neg", "neg_", "neg.out"), "STRICT")


def test_opgen_test_of_an_overload_without_a_kernel_says_so() -> None:
    rows = json.loads(CliRunner().invoke(opgen, ["coverage", "--format", "json"]).stdout)["overloads"]
    missing = next(row["op"] for row in rows if row["kind"] is row["family"] is None)
    result = run(missing, "--cases", "2")
    line = next(line for line in result.stdout.splitlines() if line.startswith(f"{missing} "))
    assert result.exit_code == 1 and "missing: no kernel" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trill"], "did you mean 'tril' or"),
        (["tril", "--dtype", "flaot32"], "did you mean 'float32'?"),
        (["nowhere::op"], "has no operator 'nowhere::op'"),
    ],
)
@pytest.mark.parametrize("verb", ["test", "truth"])
def test_a_misspelling_is_answered(
    verb: str, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--no-build", *arguments])
    assert stopped.value.code == 1 and message in capfd.readouterr().err


def test_the_dtypes_of_the_option_are_those_of_the_test_bench() -> None:
    from opgen.testing.tensors import DTYPES as known
    from opgen.truth.options import DTYPES as offered

    assert tuple(str(dtype).removeprefix("torch.") for dtype in known) == offered


REPORT = """<testsuites><testsuite>
<testcase classname="tests.judge.test_judge_itself" name="test_a_fault_is_found" />
<testcase classname="tests.judge.test_op_db.TestOpDb" name="test_forward_lerp_musa_float32" />
<testcase classname="tests.judge.test_op_db.TestOpDb" name="test_out_lerp_musa_float32">
  <skipped message="why" /></testcase>
<testcase classname="tests.judge.test_op_db.TestOpDb" name="test_errors_lerp_musa"><failure message="says
  nothing">...</failure></testcase>
</testsuite></testsuites>"""


def test_the_report_of_the_databases_is_counted_without_the_judges_own_tests() -> None:
    answer = read_report(REPORT)
    assert answer == Answer(1, 1, (("test_errors_lerp_musa", "says nothing"),))
    assert answer.summary == "PyTorch's own databases: 1 passed, 1 skipped, 1 failed"
    assert "no entry" in read_report("<testsuites />").summary


def test_a_judge_that_ends_early_is_a_failure_and_none_at_all_is_none(tmp_path: Path) -> None:
    with asked(tmp_path, "lerp") as pending:
        assert pending is None
    folder = tmp_path / "tests" / "judge"
    folder.mkdir(parents=True)
    (folder / "conftest.py").write_text("raise SystemExit('out of order')\n")
    with asked(tmp_path, "lerp") as pending:
        assert pending is not None
        answer = pending.answer()
    assert len(answer.failures) == 1 and "ended with status" in answer.failures[0][1]
