"""What `opgen coverage` writes where, and what it knows of operators that no list names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from coverage_cases import record_of
from test_coverage_questions import YAML, run

from opgen.coverage.rules import parse_rule
from opgen.tables import counted
from opgen.truth.digest import beside, chosen_target
from opgen.truth.record import DtypeResult, Record, Verdict
from opgen.truth.store import Store


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "musa_functions.yaml").write_text(YAML)
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("--html", "x", "--csv", "x"),
        ("--html", "x", "--badge", "./sub/../x"),
        ("--csv", "linked", "--badge", "target"),
        ("--csv", "report/coverage.json", "--write", "report"),
        ("--badge", "report/coverage.svg", "--write", "report"),
    ],
)
def test_two_outputs_in_one_file_are_refused_before_anything_is_written(project, capfd, arguments):
    (project / "sub").mkdir()
    (project / "linked").symlink_to(project / "target")
    before = sorted(path.name for path in project.rglob("*"))
    code, out, err = run(capfd, *arguments)
    assert (code, out) == (2, "") and "would both write" in err and arguments[0] in err and arguments[2] in err
    assert sorted(path.name for path in project.rglob("*")) == before


def test_two_outputs_into_a_device_are_no_conflict(project, capfd):
    assert run(capfd, "--html", "/dev/null", "--csv", "/dev/null")[0] == 0


def kept(project: Path, record: Record) -> None:
    from opgen.gen import Sources
    from opgen.project import find_project

    sources = Sources.of(find_project(project))
    Store.of(project, chosen_target(sources), sources.install.release).save(record)


def test_an_operator_that_was_loaded_is_answered_from_its_record(project, capfd):
    from dataclasses import replace

    path = project / "mine.py"
    path.write_text("one = 1\n")
    loaded = (str(path),)
    failed = DtypeResult(Verdict.FAILED, cases=20, agreed=19, failed=1, families={"mudnn": 20}, reason="wrong value")
    record = replace(record_of("mine::rope", float32=failed), loaded=loaded, digest=beside("abc", loaded), asked=20)
    kept(project, record)
    code, out, _ = run(capfd, "mine::rope")
    assert code == 0 and out.startswith("mine::rope  FAILED\n") and "wrong value" in out
    assert "no operator of this project" in out and "is as it was then" in out
    assert f"opgen truth mine::rope --load {path}" in out
    path.write_text("one = 2\n")
    assert "has changed since" in run(capfd, "mine::rope")[1]
    code, out, _ = run(capfd, "mine::rope", "--format", "json")
    (row,) = json.loads(out)
    assert (row["state"], row["verdict"], row["family"]) == ("loaded", "FAILED", "mudnn") and "project" in row["note"]
    # it is in no total, no list and no file
    assert "mine::rope" not in run(capfd, "--verdict", "failed")[1] + run(capfd, "--csv", "-")[1]


def test_an_operator_that_nobody_has_run_says_how_to(project, capfd):
    code, _, err = run(capfd, "other::thing")
    assert code == 1 and "`opgen truth other::thing --load FILE`" in err


def test_a_bound_is_shown_as_it_was_written() -> None:
    totals = {"registered": 50, "strict": 99_999}
    with pytest.raises(ValueError, match=r"100\.0001% is more than everything"):
        parse_rule("100.0001", totals)
    assert "at least 99.99995%" in str(parse_rule("strict>=99.99995%", totals).broken(totals, 100_000))


def test_one_is_no_plural() -> None:
    assert [counted(n, "overload") for n in (0, 1, 1228)] == ["0 overloads", "1 overload", "1,228 overloads"]
    assert [counted(n, "entry") for n in (1, 2)] == ["1 entry", "2 entries"]
