"""benchmarks/bench.py edits the tree to time an incremental build: whatever happens, it must leave it as it was."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "benchmarks" / "bench.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "ops.yaml", tmp_path / "K.cpp"]
    for path in paths:
        path.write_text(f"K in {path.name}\n")
    return paths


def contents(files: list[Path]) -> list[str]:
    return [path.read_text() for path in files]


def test_edit_is_undone_after_success_failure_and_termination(bench: ModuleType, files: list[Path]) -> None:
    before = contents(files)
    replacements = dict.fromkeys(files, ("K in", "L in"))
    with bench.edited(replacements):
        assert contents(files) == ["L in ops.yaml\n", "L in K.cpp\n"]
    assert contents(files) == before
    with pytest.raises(ZeroDivisionError), bench.edited(replacements):
        raise ZeroDivisionError
    assert contents(files) == before
    with pytest.raises(SystemExit), bench.edited(replacements):
        os.kill(os.getpid(), signal.SIGTERM)
    assert contents(files) == before


def test_nothing_is_edited_when_one_file_has_not_the_text(bench: ModuleType, files: list[Path]) -> None:
    before = contents(files)
    files[1].write_text("other\n")
    with pytest.raises(SystemExit, match="does not contain"), bench.edited(dict.fromkeys(files, ("K in", "L"))):
        pass
    assert contents(files) == [before[0], "other\n"]


def test_ratio_is_measured_over_reference(bench: ModuleType) -> None:
    cells = bench.Figure("gen", 1.5, 3, "s", "target", "note").cells()
    assert cells == ("gen", "1.5 s", "target 3 s", "0.50", "note")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("...; 160 files written (2.41 s)", "160 files written"),
        ("...; up to date (0.1 s)", "0 files written"),
        ("", ""),
    ],
)
def test_files_written_is_read_from_the_summary(bench: ModuleType, output: str, expected: str) -> None:
    assert bench.files_written(output) == expected
