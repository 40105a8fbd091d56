"""What `opgen coverage` can be asked: one operator, what is missing, other backends, earlier commits, bounds for CI."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from coverage_cases import NASTY, record_of, registration, sample, surveyed
from hypothesis import given
from hypothesis import strategies as st

from opgen.cli import main
from opgen.coverage.against import BACKENDS, gap
from opgen.coverage.badge import badge
from opgen.coverage.chart import chart
from opgen.coverage.files import write_file
from opgen.coverage.matrix import State, cuda_overloads, vendor_only
from opgen.coverage.report import markdown
from opgen.coverage.rows import Standing, by_dtype, by_standing, dtypes_of, namespace, worst_first
from opgen.coverage.rules import parse_rule
from opgen.coverage.since import changes
from opgen.coverage.table import as_csv
from opgen.diagnostics import OpgenError
from opgen.truth.record import DtypeResult, Verdict
from opgen.upstream import Upstream, load_upstream

YAML = """\
- func: tril
- func: tril_
- func: tril.out
  dispatch:
    PrivateUse1: MusaTril
- func: bincount
  dispatch:
    PrivateUse1: cpu_fallback
- func: musa::twice(Tensor x) -> Tensor
  dispatch:
    PrivateUse1: Twice
"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return load_upstream()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "musa_functions.yaml").write_text(YAML)
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["coverage", *map(str, arguments)])
    out, err = capfd.readouterr()
    return int(stopped.value.code or 0), out, err


# ---- rows


def test_standings_tell_missing_from_untested(upstream: Upstream) -> None:
    _, rows = sample(upstream)
    found = {row.op: row for row in rows}
    assert {op: found[op].standing for op in ("tril.out", "cat", "lerp.Scalar_out", "nonzero", "_fft_c2c")} == {
        "tril.out": Standing.STRICT,
        "cat": Standing.PARTIAL,
        "lerp.Scalar_out": Standing.FAILED,
        "nonzero": Standing.UNTESTED,
        "_fft_c2c": Standing.MISSING,
    }
    assert [row.op for row in worst_first(rows)][:2] == ["lerp.Scalar_out", "cat"]
    counted = by_standing(rows, lambda row: row.namespace)
    assert sum(counts.total() for counts in counted.values()) == len(rows)
    assert [counts.total() for counts in counted.values()] == sorted(
        (c.total() for c in counted.values()), reverse=True
    )


def test_a_dtype_that_the_device_lacks_is_not_counted(upstream: Upstream) -> None:
    lacking = DtypeResult(Verdict.UNTESTED, cases=5, unsupported=5)
    _, rows = surveyed(
        upstream, [registration("cat")], [record_of("cat", float32=Verdict.STRICT, complex64=lacking, float8=lacking)]
    )
    assert dtypes_of(rows) == ("float32", "complex64", "float8")
    counts = by_dtype(rows, dtypes_of(rows))
    assert counts["float32"].total() == 1 and counts["complex64"].total() == 0


def test_next_steps_fit_the_state(upstream: Upstream) -> None:
    _, rows = sample(upstream)
    found = {row.op: row.next for row in rows}
    assert found["_fft_c2c"] == "opgen new _fft_c2c"
    assert found["bincount"] == "opgen explain bincount"
    assert found["cat"] == "opgen test cat"
    assert found["tril.out"] is None


@pytest.mark.parametrize(
    ("op", "where"),
    [
        ("add.Tensor", "torch"),
        ("gelu", "torch.nn"),
        ("linalg_cross", "torch.linalg"),
        ("special_i1", "torch.special"),
        ("_foreach_add.List", "torch._foreach"),
        ("_softmax", "internal"),
        ("__ilshift__.Scalar", "Tensor"),
        ("musa::swiglu", "musa"),
    ],
)
def test_namespaces_are_those_that_users_know(upstream: Upstream, op: str, where: str) -> None:
    assert namespace(op, upstream) == where


# ---- one operator, lists


def test_a_name_stands_for_all_its_overloads_an_overload_for_itself(project, capfd):
    code, out, _ = run(capfd, "tril", "--format", "json")
    assert code == 0
    assert [row["op"] for row in json.loads(out)] == ["tril"]  # an overload of its own
    code, out, _ = run(capfd, "lerp", "--format", "json")
    rows = json.loads(out)
    assert [row["op"] for row in rows] == sorted(
        ["lerp.Scalar", "lerp.Scalar_out", "lerp.Tensor", "lerp.Tensor_out", "lerp_.Scalar", "lerp_.Tensor"]
    )
    assert rows[0]["state"] == "missing" and rows[0]["next"] == "opgen new lerp.Scalar"
    code, out, _ = run(capfd, "aten::lerp.Scalar")
    assert out.startswith("lerp.Scalar  UNTESTED\n") and "opgen new lerp.Scalar" in out


def test_operators_that_are_not_counted_say_why(project, capfd):
    for op, why in (
        ("cudnn_convolution", "vendor-only (cuDNN)"),
        ("reshape", "no CUDA kernel"),
        ("musa::twice", "our own"),
    ):
        code, out, _ = run(capfd, op)
        assert code == 0 and why in out, op


def test_an_unknown_operator_is_a_message_with_what_was_meant(project, capfd):
    code, out, err = run(capfd, "lerpp")
    assert (code, out) == (1, "") and "no operator 'lerpp'" in err and "did you mean 'lerp'" in err
    assert "\x1b" not in run(capfd, "a\x1b[31mb")[2]
    assert run(capfd, "")[0] == 1


def test_lists_are_by_state_and_verdict(project, capfd):
    rows = json.loads(run(capfd, "--fallback", "--format", "json")[1])
    assert [row["op"] for row in rows] == ["bincount"]
    missing = json.loads(run(capfd, "--missing", "--format", "json")[1])
    assert {row["state"] for row in missing} == {"missing"}
    both = json.loads(run(capfd, "--missing", "--fallback", "--format", "json")[1])
    assert len(both) == len(missing) + 1
    assert all(
        row["verdict"] == "UNTESTED" for row in json.loads(run(capfd, "--verdict", "untested", "--format", "json")[1])
    )
    code, out, _ = run(capfd, "--verdict", "FAILED")
    assert (code, out) == (0, "no failed overloads\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("lerp", "--missing"),
        ("lerp", "--against", "cpu"),
        ("--since", "HEAD", "--against", "cpu"),
        ("--csv", "-", "--missing"),
        ("--csv", "-", "--format", "json"),
        ("--against", "rocm"),
        ("--verdict", "good"),
        ("--html", ""),
        ("--fail-under", "nine"),
        ("--fail-under", "strikt>=5"),
        ("--fail-under", "120%"),
    ],
)
def test_questions_that_do_not_go_together_or_mean_nothing_are_usage_errors(project, capfd, arguments):
    code, out, err = run(capfd, *arguments)
    assert (code, out) == (2, "") and "Error:" in err and "Traceback" not in err


# ---- against


def test_every_backend_counts_what_its_dispatch_key_has(upstream: Upstream) -> None:
    for backend, key in BACKENDS.items():
        found = gap(backend, {}, upstream)
        assert found.has == sum(found.states.values())
        assert len(found.lacking) == found.states[State.MISSING]
        names = {o.op for o in found.lacking}
        assert not names & set(found.own)
        for op in names:
            delegate = upstream.functions[op].structured_delegate
            assert upstream.kernel(op, key) or upstream.kernel(str(delegate), key)


def test_against_cuda_is_the_denominator(upstream: Upstream) -> None:
    found = gap("cuda", {}, upstream)
    assert found.has + len(found.own) == len(cuda_overloads(upstream))
    assert set(found.own) <= set(vendor_only())


def test_against_moves_with_the_registrations(upstream: Upstream) -> None:
    before = gap("mps", {}, upstream)
    registered: Any = {op: registration(op) for op in ("nonzero", "bincount")}
    registered["bincount"].family = "cpu_fallback"
    after = gap("mps", registered, upstream)
    assert {o.op for o in before.lacking} - {o.op for o in after.lacking} == {"nonzero", "bincount"}
    assert [o.op for o in after.on_cpu] == ["bincount"]
    assert "torch-xpu-ops" in (gap("xpu", {}, upstream).note or "")


def test_against_is_shown_as_text_and_json(project, capfd):
    code, out, _ = run(capfd, "--against", "mps")
    assert code == 0 and out.startswith("MPS has a kernel for ") and "_mps_convolution" in out.splitlines()[-1]
    document = json.loads(run(capfd, "--against", "mps", "--format", "json")[1])
    assert document["has"] == sum(document["states"].values()) and "bincount" in document["cpu_fallback"]


# ---- since


def row(op: str, family: str | None = "mudnn", **verdicts: Any) -> dict[str, Any]:
    return {"op": op, "family": family, "verdicts": verdicts}


def document(*rows: dict[str, Any], **totals: int) -> dict[str, Any]:
    return {"torch": "2.13.0", "totals": totals, "overloads": list(rows)}


def test_changes_are_gained_lost_better_and_worse_by_dtype() -> None:
    before = document(
        row("a", None),
        row("b"),
        row("c", float32="PARTIAL", int64="STRICT"),
        row("d", "cpu_fallback"),
        row("old"),
        row("same", float32="STRICT", int64="STRICT"),
        strict=1,
        failed=2,
    )
    after = document(
        row("a"),
        row("b", None),
        row("c", float32={"verdict": "STRICT", "cases": 9}, int64={"verdict": "FAILED", "cases": 9}),
        row("d", "ported"),
        row("new"),
        row("same", float32="STRICT", int64="UNTESTED", bool="FAILED"),
        strict=5,
        failed=2,
        a_total_that_is_new=9,
    )
    found = changes("abc", before, after)
    assert [(c.what, c.op, c.before, c.after) for c in found.changes] == [
        ("gained", "a", "missing", "mudnn"),
        ("gained", "d", "cpu_fallback", "ported"),
        ("better", "c", "PARTIAL", "STRICT (float32)"),
        ("lost", "b", "mudnn", "missing"),
        ("worse", "c", "STRICT", "FAILED (int64)"),
        ("measured", "same", "UNTESTED", "FAILED (bool)"),
        ("unmeasured", "same", "STRICT", "UNTESTED (int64)"),
        ("counted", "new", "-", "mudnn"),
        ("dropped", "old", "mudnn", "-"),
    ]
    assert found.totals == {"strict": (1, 5)}


_rows = st.lists(
    st.builds(
        lambda op, family, verdicts: row(op, family, **verdicts),
        st.sampled_from("abcdef"),
        st.sampled_from([None, "mudnn", "ported", "cpu_fallback", "composite"]),
        st.dictionaries(st.sampled_from(["float32", "int64"]), st.sampled_from([v.value for v in Verdict])),
    ),
    unique_by=lambda r: r["op"],
)


@given(_rows, _rows)
def test_what_is_gained_one_way_is_lost_the_other(before: list[Any], after: list[Any]) -> None:
    assert changes("x", document(*before), document(*before)).changes == ()
    there, back = changes("x", document(*before), document(*after)), changes("x", document(*after), document(*before))
    for one, other in (("gained", "lost"), ("better", "worse"), ("measured", "unmeasured"), ("counted", "dropped")):
        assert {c.op for c in there.of(one)} == {c.op for c in back.of(other)}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_since_reads_the_commits_report(project, capfd):
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "nothing yet")
    assert run(capfd, "--write", "coverage_report")[0] == 0
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "report")
    code, out, _ = run(capfd, "--since", "HEAD")
    assert code == 0 and "nothing has changed" in out
    with (project / "yaml" / "musa_functions.yaml").open("a") as file:
        file.write("- func: nonzero\n  dispatch: {PrivateUse1: K}\n")
    code, out, _ = run(capfd, "--since", "HEAD", "--format", "json")
    changed = json.loads(out)
    assert [c["op"] for c in changed["gained"]] == ["nonzero"] and changed["totals"]["registered"] == [4, 5]
    code, out, _ = run(capfd, "--since", "HEAD")
    assert "gained (1)" in out and "nonzero" in out
    for commit, said in (
        ("HEAD~1", "has no coverage_report/coverage.json"),
        ("nosuch", "there is no commit 'nosuch'"),
        ("--help", "there is no commit '--help'"),
        ("--output=x", "there is no commit"),
    ):
        code, out, err = run(capfd, f"--since={commit}")
        assert (code, out) == (1, "") and said in err, commit
    (project / "coverage_report" / "coverage.json").write_text("[]")
    git(project, "commit", "-q", "-a", "-m", "broken")
    code, _, err = run(capfd, "--since", "HEAD")
    assert code == 1 and "is no coverage report" in err


def test_since_outside_a_repository_is_a_message(project, capfd, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    code, _, err = run(capfd, "--since", "HEAD")
    assert code == 1 and "is in no git repository" in err
    monkeypatch.setenv("PATH", "")
    code, _, err = run(capfd, "--since", "HEAD")
    assert code == 1 and "git is not installed" in err


# ---- bounds

TOTALS = {"registered": 50, "strict": 30, "failed": 2}


@pytest.mark.parametrize(
    ("bound", "holds"),
    [
        ("50", True),
        ("50.1", False),
        ("50%", True),
        ("registered >= 51%", False),
        ("strict>=30", True),
        ("strict>=31", False),
        ("strict<=30%", True),
        ("failed<=2", True),
        ("failed<=1", False),
        ("failed<=1.5%", False),
    ],
)
def test_bounds_hold_or_say_by_how_much_not(bound: str, holds: bool) -> None:
    said = parse_rule(bound, TOTALS).broken(TOTALS, 100)
    assert (said is None) is holds
    assert said is None or "has to be at" in said


@given(st.text())
def test_any_text_is_a_bound_or_a_value_error(text: str) -> None:
    try:
        parse_rule(text, TOTALS).broken(TOTALS, 0)
    except ValueError as error:
        assert str(error)


def test_fail_under_is_exit_status_1_after_everything_is_written(project, capfd):
    code, out, err = run(capfd, "--fail-under", "99", "--csv", "all.csv")
    assert code == 1 and "registered is 4 of" in err and "at least 99%" in err
    assert "native" in out and (project / "all.csv").exists()
    code, _, err = run(capfd, "--fail-under", "strict>=1%", "--fail-under", "failed<=0", "--fail-under", "0")
    assert code == 1 and "strict is 0" in err and "failed" not in err
    assert run(capfd, "--fail-under", "failed<=0", "--fail-under", "0")[0] == 0


# ---- files


def test_csv_has_a_line_for_each_overload_and_survives_its_reasons(upstream: Upstream) -> None:
    matrix, rows = sample(upstream)
    lines = list(csv.DictReader(io.StringIO(as_csv(rows, matrix.vendor_only), newline="")))
    assert len(lines) == matrix.denominator + len(matrix.vendor_only)
    found = {line["op"]: line for line in lines}
    assert found["lerp.Scalar_out"]["reason"].endswith(NASTY)
    assert (found["cat"]["verdict"], found["cat"]["int64"], found["cat"]["float32"]) == ("PARTIAL", "STRICT", "PARTIAL")
    assert found["cudnn_convolution"]["state"] == "vendor_only" and found["cudnn_convolution"]["reason"]


def test_csv_to_standard_output_is_nothing_but_csv(project, capfd):
    code, out, err = run(capfd, "--csv", "-")
    assert code == 0 and err == ""
    assert out.splitlines()[0].startswith("op,namespace,state,kind,family,source,verdict,")


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_the_badge_is_well_formed_whatever_its_label(label: str, part: int, whole: int) -> None:
    label = "".join(c for c in label if c.isprintable())
    root = ET.fromstring(badge(label, min(part, whole), whole))
    left, right = root.findall(f".//{SVG}text")
    assert left.text == (label or None) and str(right.text).endswith("% strict")


def test_the_chart_draws_every_overload_once_in_each_half(upstream: Upstream) -> None:
    _, rows = sample(upstream)
    root = ET.fromstring(chart(rows))
    counts = [int(str(title.text).rpartition(": ")[2].split()[0]) for title in root.findall(f".//{SVG}title")]
    assert sum(counts) == 2 * len(rows)
    assert "prefers-color-scheme" in chart(rows)
    width = float(root.attrib["viewBox"].split()[2])
    for box in root.findall(f".//{SVG}rect"):
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= width
    ET.fromstring(chart([]))


def test_the_report_shows_the_worst_first_and_is_not_bent_by_reasons(upstream: Upstream) -> None:
    matrix, rows = sample(upstream)
    text = markdown(matrix, rows)
    assert "<script>" not in text
    worst = text[text.index("## Worst first (2)") :].split("\n\n")[1].splitlines()
    assert [line.split(" | ")[0] for line in worst[2:]] == ["| `lerp.Scalar_out`", "| `cat`"]
    for line in worst:
        assert len([c for i, c in enumerate(line) if c == "|" and line[i - 1] != "\\"]) == 6
    assert "| float32 | 3 | 1 | 1 | 1 |" in text


@pytest.mark.parametrize("option", ["--html", "--csv", "--badge"])
def test_files_are_written_whole_or_not_at_all(project, capfd, option):
    path = project / "out.file"
    assert run(capfd, option, path)[0] == 0
    assert path.read_text()
    assert sorted(p.name for p in project.iterdir()) == ["kernels", "out.file", "yaml"]
    for bad in (project / "none" / "file", project):
        code, _, err = run(capfd, option, bad)
        assert code in (1, 2) and "Traceback" not in err and str(bad) in err.replace("\n", "")
    assert run(capfd, option, "/dev/null")[0] == 0


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_file(path, "old")
    path.chmod(0o640)
    write_file(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link.html"
    link.symlink_to(path)
    write_file(link, "newer")
    assert link.is_symlink() and path.read_text() == "newer"

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OpgenError, match="No space left"):
        write_file(path, "half")
    assert path.read_text() == "newer" and sorted(p.name for p in tmp_path.iterdir()) == ["link.html", "page.html"]
