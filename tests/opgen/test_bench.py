"""benchmarks/bench.py edits the tree to time an incremental build: whatever happens, it must leave it as it was."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from generator_cases import rendered

from opgen.diagnostics import Diagnostics
from opgen.gen import Sources, analyse
from opgen.project import find_project
from opgen.spec import load_specs
from opgen.upstream import find_torch, load_upstream

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


@pytest.fixture(scope="module")
def helpers() -> Iterator[SimpleNamespace]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield SimpleNamespace(
            compile_time=importlib.import_module("compile_time"), large_list=importlib.import_module("large_list")
        )
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_the_large_list_is_without_fault_and_as_long_as_asked(helpers: SimpleNamespace, tmp_path: Path) -> None:
    project, upstream, listed = find_project(ROOT), load_upstream(), load_specs(find_project(ROOT).yaml, Diagnostics())
    names = frozenset(spec.func for spec in listed)
    path = helpers.large_list.write_large_list(project, upstream, names, len(names) + 30, tmp_path / "list")
    diagnostics = Diagnostics()
    analysis = analyse(Sources(path, path.parent / "kernels", find_torch()), diagnostics)
    assert not diagnostics.errors, list(map(str, diagnostics.errors))
    assert analysis.entries == len(names) + 30
    with pytest.raises(ValueError, match="catalogue has only"):
        helpers.large_list.write_large_list(project, upstream, names, 10_000, tmp_path / "too_long")


def test_compile_commands_are_those_of_generated_sources_without_a_compiler_cache(
    helpers: SimpleNamespace, tmp_path: Path
) -> None:
    entries = [
        {
            "directory": str(tmp_path),
            "command": f"ccache g++ -O1 -o {name}.o -c /x/{name}.cpp",
            "file": f"/x/{name}.cpp",
        }
        for name in ("Signatures_00", "RegisterPrivateUse1_03", "AddSub")
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    first, second = helpers.compile_time.commands(tmp_path)
    assert (first.source.name, second.source.name) == ("RegisterPrivateUse1_03.cpp", "Signatures_00.cpp")
    assert first.of(Path("/y/Plain.cpp"), Path("/y/out.o")) == ["g++", "-O1", "-o", "/y/out.o", "-c", "/y/Plain.cpp"]


def test_the_plain_form_registers_the_same_wrappers(helpers: SimpleNamespace) -> None:
    text = rendered("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n")
    (source,) = [text[name] for name in text if name.startswith("Register") and "m.impl" in text[name]]
    plain = helpers.compile_time.plain(source)
    assert 'm.impl("nonzero", TORCH_FN(wrapper_PrivateUse1__nonzero));' in plain and "wrapped(" not in plain
