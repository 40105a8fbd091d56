"""`opgen coverage`: what is counted, that every overload is counted once, and both output formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from coverage_cases import registration
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opgen.backend import MUSA
from opgen.cli import opgen
from opgen.coverage.matrix import Matrix, State, cuda_overloads, measure, vendor_only
from opgen.coverage.report import markdown, to_json
from opgen.coverage.rows import Row, rows_of
from opgen.truth.record import DtypeResult, Record, Verdict
from opgen.upstream import Upstream, load_upstream


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return load_upstream()


def record_of(op: str, verdict: Verdict) -> Record:
    result = DtypeResult(verdict, cases=20, reason=None if verdict is Verdict.STRICT else "why")
    return Record(op, "2.13.0", "host", "abc", 0, "cpu", "", 1.0, {"float32": result})


def matrix_of(upstream: Upstream, *registrations: Any) -> Matrix:
    return measure(cast(Any, registrations), upstream, MUSA)


def rows_for(upstream: Upstream, matrix: Matrix) -> tuple[Row, ...]:
    return rows_of(matrix, {}, upstream)


def states(matrix: Matrix) -> dict[str, State]:
    return {overload.op: overload.state for overload in matrix.overloads}


# ---- what is counted


def test_denominator_and_vendor_only_are_all_cuda_overloads(upstream: Upstream) -> None:
    matrix = matrix_of(upstream)
    counted = {o.op for o in matrix.overloads} | {v.op for v in matrix.vendor_only}
    assert counted == set(cuda_overloads(upstream))
    assert matrix.denominator + len(matrix.vendor_only) == len(counted)
    if upstream.torch_version.startswith("2.13.0"):
        assert len(counted) == 1268


def test_structured_members_count_with_their_out_overload(upstream: Upstream) -> None:
    counted = set(cuda_overloads(upstream))
    assert {"tril", "tril_", "tril.out", "add.Tensor", "add_.Tensor", "add.out", "nonzero"} <= counted
    # One is made of others, and the other two have no CUDA kernel.
    assert not {"reshape", "mkldnn_convolution", "convolution_overrideable"} & counted


def test_every_vendor_only_overload_has_a_reason_and_names_its_library(upstream: Upstream) -> None:
    for entry in vendor_only().values():
        assert entry.reason
        assert entry.library in ("cuDNN", "MIOpen", "cuSPARSELt")
    named = {
        op for op in cuda_overloads(upstream) if any(s in op for s in ("cudnn", "miopen", "cslt", "hipblas", "hipdnn"))
    }
    assert {entry.op for entry in matrix_of(upstream).vendor_only} == named


# ---- the states


def test_a_skeleton_counts_as_missing_and_is_told_apart(upstream: Upstream) -> None:
    unwritten = registration("nonzero")
    unwritten.unwritten = True
    matrix, before = matrix_of(upstream, unwritten), matrix_of(upstream)
    assert states(matrix)["nonzero"] is State.SKELETON
    assert matrix.totals() == before.totals()
    assert "| skeleton | 1 |" in markdown(matrix, rows_for(upstream, matrix))
    assert "skeleton" not in markdown(before, rows_for(upstream, before))


def test_states_without_any_entry(upstream: Upstream) -> None:
    found = states(matrix_of(upstream))
    assert found["_foreach_add.List"] is State.COMPOSITE  # upstream: CompositeExplicitAutograd
    assert found["nonzero"] is State.MISSING
    assert found["tril"] is found["tril_"] is found["tril.out"] is State.MISSING
    assert not {State.NATIVE, State.CPU_FALLBACK} & set(found.values())


def test_registered_out_overload_carries_its_group(upstream: Upstream) -> None:
    found = states(matrix_of(upstream, registration("tril.out", kind="legacy_meta")))
    assert found["tril.out"] is State.NATIVE
    assert found["tril"] is found["tril_"] is State.COMPOSITE


def test_cpu_fallback_is_registered_but_not_native(upstream: Upstream) -> None:
    matrix = matrix_of(upstream, registration("nonzero", family="cpu_fallback"), registration("bincount"))
    assert states(matrix)["nonzero"] is State.CPU_FALLBACK
    totals = matrix.totals()
    assert (totals["registered"], totals["native"], totals["cpu_fallback"]) == (2, 1, 1)
    assert matrix.by_family() == {"cpu_fallback": 1, "mudnn": 1} or matrix.by_family() == {
        "mudnn": 1,
        "cpu_fallback": 1,
    }


def test_other_keys_and_uncounted_operators_change_nothing(upstream: Upstream) -> None:
    others = (
        registration("nonzero", key="AutogradPrivateUse1"),
        registration("convolution_overrideable"),
        registration("musa::rope"),
        registration("cudnn_convolution"),
    )
    assert matrix_of(upstream, *others) == matrix_of(upstream)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_totals_always_add_up(upstream: Upstream, data: st.DataObject) -> None:
    families = st.sampled_from(["mudnn", "ported", "upstream", "cpu_fallback", None])
    names = data.draw(st.lists(st.sampled_from(upstream.names), unique=True, max_size=200))
    verdicts = data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(Verdict))) if names else {}
    matrix = measure(
        cast(Any, [registration(name, data.draw(families)) for name in names]),
        upstream,
        MUSA,
        {op: record_of(op, verdict) for op, verdict in verdicts.items()},
    )
    totals = matrix.totals()
    assert totals["registered"] == totals["native"] + totals["cpu_fallback"]
    assert matrix.denominator == totals["registered"] + totals["composite"] + totals["missing"]
    assert matrix.denominator + totals["vendor_only"] == len(cuda_overloads(upstream))
    assert totals["registered"] == len(set(names) & {o.op for o in matrix.overloads})
    assert sum(totals[v.value.lower()] for v in Verdict) == matrix.denominator
    assert sum(matrix.by_family().values()) == totals["registered"] == sum(matrix.by_kind().values())
    assert [o.op for o in matrix.overloads] == sorted(o.op for o in matrix.overloads)


# ---- output

YAML = """\
- func: tril
- func: tril_
- func: tril.out
  dispatch:
    PrivateUse1: MusaTril
- func: bincount
  dispatch:
    PrivateUse1: cpu_fallback
"""


@pytest.fixture
def entries(tmp_path: Path) -> Path:
    path = tmp_path / "ops.yaml"
    path.write_text(YAML)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(opgen, ["coverage", *map(str, arguments)], catch_exceptions=False)


def test_json_has_exactly_the_promised_shape(entries: Path) -> None:
    result = run("--yaml", entries, "--format", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert list(document) == ["torch", "denominator", "totals", "overloads"]
    states = ["registered", "native", "composite", "cpu_fallback", "missing", "vendor_only"]
    assert list(document["totals"]) == [*states, "strict", "partial", "failed", "untested"]
    assert document["totals"]["registered"] == 4
    assert document["totals"]["cpu_fallback"] == 1
    assert len(document["overloads"]) == document["denominator"]
    shape = ["op", "kind", "family", "source", "verdict", "reason", *PROVENANCE, "calls", "verdicts"]
    assert all(list(row) == shape for row in document["overloads"])
    rows = {row["op"]: row for row in document["overloads"]}
    assert rows["tril"]["kind"] == "legacy_meta"
    known = ("op", "kind", "family", "verdict", "verdicts")
    assert [rows["bincount"][key] for key in known] == ["bincount", "unstructured", "cpu_fallback", "UNTESTED", {}]
    assert [rows["nonzero"][key] for key in known] == ["nonzero", None, None, "UNTESTED", {}]
    assert rows["nonzero"]["reason"] == "missing: no kernel for the device"
    assert rows["_foreach_add.List"]["family"] == "composite"


PROVENANCE = ["reference", "seed", "asked", "complete", "target", "commit", "digest", "seconds"]


def test_a_record_is_shown_whole_in_its_row(upstream: Upstream) -> None:
    right = DtypeResult(Verdict.STRICT, cases=20, agreed=20, families={"mudnn": 20})
    wrong = DtypeResult(Verdict.FAILED, cases=3, agreed=2, failed=1, reason="wrong value", script="print()")
    dtypes = {"float32": right, "int64": wrong}
    record = Record(
        "tril.out", "2.13.0", "host", "abc", 7, "cpu", "d", 0.5, dtypes, None, 20, True, ("tril.out", "copy_")
    )
    matrix = measure(cast(Any, [registration("tril.out")]), upstream, MUSA, {"tril.out": record})
    rows = {row["op"]: row for row in json.loads(to_json(matrix))["overloads"]}
    row = rows["tril.out"]
    assert (row["verdict"], row["reason"]) == ("FAILED", "int64: wrong value")
    shared = {key: row[key] for key in (*PROVENANCE, "op", "calls")}
    again = {**shared, "torch": matrix.torch_version, "dtypes": row["verdicts"]}
    assert Record.from_json(again) == record
    assert (matrix.totals()["failed"], matrix.totals()["strict"]) == (1, 0)


def test_each_row_of_the_json_is_a_line(upstream: Upstream) -> None:
    matrix = matrix_of(upstream)
    lines = to_json(matrix).splitlines()
    assert sum(line.startswith('    {"op": ') for line in lines) == matrix.denominator
    assert json.loads(to_json(matrix)) == matrix.as_json()
    empty = replace(matrix, overloads=())
    assert json.loads(to_json(empty)) == empty.as_json()


def test_table_shows_the_same_totals(entries: Path) -> None:
    totals = json.loads(run("--yaml", entries, "--format", "json").stdout)["totals"]
    lines = [line.split() for line in run("--yaml", entries).stdout.splitlines() if line]
    for state in ("native", "cpu_fallback", "composite", "missing"):
        assert next(line[1].replace(",", "") for line in lines if line[0] == state) == str(totals[state])


def test_report_is_written_and_reproducible(entries: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert run("--yaml", entries, "--write", tmp_path / folder).exit_code == 0
    for name in ("README.md", "coverage.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    readme = (tmp_path / "a" / "README.md").read_text()
    assert "| legacy_meta | 3 |" in readme
    assert "`_fft_c2c`" in readme and "`cudnn_convolution` | cuDNN |" in readme
    assert len(readme.splitlines()) < 300, "short enough to be read"
    assert "![Overloads by namespace and kernel family](coverage.svg)" in readme
    assert (tmp_path / "a" / "coverage.svg").read_text().startswith("<svg ")


def test_unwritable_report_folder_is_a_message(
    entries: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from opgen.cli import main

    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as stopped:
        main(["coverage", "--yaml", str(entries), "--write", str(tmp_path / "file" / "below")])
    assert stopped.value.code == 1
    assert "cannot write the report" in capfd.readouterr().err


def test_a_readme_that_is_no_report_stays(entries: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from opgen.cli import main

    (tmp_path / "README.md").write_text("# A project\n")
    with pytest.raises(SystemExit) as stopped:
        main(["coverage", "--yaml", str(entries), "--write", str(tmp_path)])
    assert stopped.value.code == 1
    assert f"{tmp_path / 'README.md'}: error: not a coverage report" in capfd.readouterr().err
    assert (tmp_path / "README.md").read_text() == "# A project\n"
    assert not (tmp_path / "coverage.json").exists()


def test_errors_in_the_list_are_reported_with_status_1(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("- func: trill\n")
    result = run("--yaml", bad, "--format", "json", "--write", tmp_path / "report")
    assert result.exit_code == 1
    assert "bad.yaml:1:9: error:" in result.stderr
    assert json.loads(result.stdout)["totals"]["registered"] == 0
    assert not (tmp_path / "report").exists()


def test_markdown_and_json_agree(upstream: Upstream) -> None:
    matrix = matrix_of(upstream, registration("tril.out"))
    assert f"**{matrix.denominator:,}**" in markdown(matrix, rows_for(upstream, matrix))
    assert json.loads(to_json(matrix))["totals"] == matrix.totals()
