"""`opgen list`: one row per entry and dispatch key, whatever of the kernels exists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opgen.cli import opgen

COLUMNS = ["op", "kind", "form", "dispatch_key", "kernel", "family", "source", "line"]


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(opgen, ["list", "--yaml", str(path), *arguments], catch_exceptions=False)


def listed(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    path = tmp_path / "ops.yaml"
    path.write_text(text)
    result = run(path, "--format", "json")
    assert result.exit_code == 0, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    assert all(list(row) == COLUMNS for row in rows)
    return rows


EVERY_KIND = """\
- func: lerp.Scalar_out
- func: lerp.Scalar
- func: tril.out
  dispatch:
    PrivateUse1: NoSuchTril
- func: tril
- func: triu.out
  precomputed:
    - diagonal -> int var
  dispatch:
    PrivateUse1: NoSuchTriu
- func: nonzero
  dispatch:
    PrivateUse1: NoSuchNonzero
- func: view_as_real
  dispatch:
    PrivateUse1: view_as_real
- func: bincount
  dispatch:
    PrivateUse1: cpu_fallback
- func: logical_not
  dispatch:
    PrivateUse1, SparsePrivateUse1: NoSuchNot
- func: musa::no_such_op(Tensor q) -> Tensor
  dispatch:
    PrivateUse1: NoSuchNew
"""


def test_every_kind_without_any_of_the_kernels(tmp_path: Path) -> None:
    rows = listed(tmp_path, EVERY_KIND)
    assert [(r["op"], r["kind"], r["form"], r["dispatch_key"], r["kernel"], r["line"]) for r in rows] == [
        ("lerp.Scalar_out", "legacy", None, "PrivateUse1", "lerp_Scalar", 1),
        ("lerp.Scalar", "legacy", None, "PrivateUse1", "lerp_Scalar", 2),
        ("tril.out", "legacy_meta", None, "PrivateUse1", "NoSuchTril", 3),
        ("tril", "legacy_meta", None, "PrivateUse1", "NoSuchTril", 6),
        ("triu.out", "customized", None, "PrivateUse1", "NoSuchTriu", 7),
        ("nonzero", "unstructured", "own", "PrivateUse1", "NoSuchNonzero", 12),
        ("view_as_real", "unstructured", "reused", "PrivateUse1", "view_as_real", 15),
        ("bincount", "unstructured", "fallback", "PrivateUse1", "cpu_fallback", 18),
        ("logical_not", "unstructured", "own", "PrivateUse1", "NoSuchNot", 21),
        ("logical_not", "unstructured", "own", "SparsePrivateUse1", "NoSuchNot", 21),
        ("musa::no_such_op", "unstructured", "new", "PrivateUse1", "NoSuchNew", 24),
    ]
    by_op = {row["op"]: row for row in rows}
    assert by_op["tril.out"]["source"] is None
    assert by_op["nonzero"]["source"] is None
    assert by_op["view_as_real"]["family"] == "upstream"
    assert by_op["bincount"]["family"] == "cpu_fallback"


def test_legacy_rows_show_the_source_that_registers_the_stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    (root / "kernels/ported").mkdir(parents=True)
    (root / "yaml").mkdir()
    (root / "kernels/ported/Lerp.cu").write_text(
        "namespace at::native {\nREGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel);\n}\n"
    )
    operator_list = root / "yaml/musa_functions.yaml"
    operator_list.write_text("- func: lerp.Scalar_out\n- func: lerp_.Scalar\n")
    monkeypatch.chdir(root)
    rows = json.loads(run(operator_list, "--format", "json").stdout)
    assert [(r["family"], r["source"]) for r in rows] == [("ported", "kernels/ported/Lerp.cu")] * 2


def test_table_is_plain_text_when_piped(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(EVERY_KIND)
    lines = run(path).stdout.splitlines()
    assert lines[0].split() == COLUMNS
    assert len(lines) == 1 + 11
    assert "\x1b" not in "".join(lines)
    assert lines[3].split() == ["tril.out", "legacy_meta", "-", "PrivateUse1", "NoSuchTril", "-", "-", "3"]


def test_what_cannot_be_classified_is_reported_and_the_rest_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text("- func: trill\n- func: nonzero\n  dispatch:\n    PrivateUse1: K\n")
    result = run(path, "--format", "json")
    assert result.exit_code == 1
    assert [row["op"] for row in json.loads(result.stdout)] == ["nonzero"]
    assert f"{path}:1:9: error:" in result.stderr


def test_no_entries_give_an_empty_list_and_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text("[]\n")
    result = run(path, "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, [])
    assert "error:" in result.stderr
