"""`opgen build`: Ninja's and the compiler's words reach the user, and one folder is built by one process at a time."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.build import BuildError, Plan, command, compile_all, configure, exclusive, find_program, run
from opgen.project import OPERATOR_LIST, Project, find_project, find_root

# A project that needs neither torch nor what is generated: what is tested here is how CMake and Ninja are driven.
LISTS = """cmake_minimum_required(VERSION 3.25)
project(sample LANGUAGES CXX)
message(STATUS "target ${OPGEN_TARGET}, generated ${OPGEN_GENERATED}, torch ${TORCH_DIR}, python ${Python3_EXECUTABLE}")
add_library(sample STATIC a.cpp b.cpp)
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    root = tmp_path / "project"
    root.mkdir()
    (root / "CMakeLists.txt").write_text(LISTS)
    (root / "a.cpp").write_text("int a() { return 1; }\n")
    (root / "b.cpp").write_text("int b() { return 2; }\n")
    return Plan(Project(root), tmp_path / "torch", "2.13.0", "host", jobs=1)


def build(plan: Plan) -> list[str]:
    steps: list[str] = []
    with exclusive(plan.folder):
        configure(plan)
        compile_all(plan, lambda done, total, what: steps.append(what))
    return steps


def test_every_target_and_torch_has_a_folder_of_its_own(plan: Plan) -> None:
    assert plan.folder == plan.project.root / "build" / "host-torch2.13.0"
    assert plan.generated == plan.project.root / "generated" / "torch2.13.0"


def test_second_build_does_nothing_and_an_edit_compiles_one_file(plan: Plan) -> None:
    assert len(build(plan)) == 3
    assert build(plan) == []
    (plan.project.root / "b.cpp").write_text("int b() { return 3; }\n")
    steps = build(plan)
    assert [step for step in steps if "Building" in step] == ["Building CXX object CMakeFiles/sample.dir/b.cpp.o"]


def test_configures_again_only_for_other_arguments(plan: Plan) -> None:
    build(plan)
    cache = plan.folder / "CMakeCache.txt"
    before = cache.stat().st_mtime_ns
    configure(plan)
    assert cache.stat().st_mtime_ns == before
    configure(Plan(**{**vars(plan), "build_type": "Debug"}))
    assert "CMAKE_BUILD_TYPE:STRING=Debug" in cache.read_text()


def test_compile_error_is_shown_without_the_command_line(plan: Plan) -> None:
    (plan.project.root / "a.cpp").write_text("int a() { return missing; }\n")
    with pytest.raises(BuildError) as caught:
        build(plan)
    text = str(caught.value)
    assert "a.cpp:1:18: error:" in text and "missing" in text
    assert "-o CMakeFiles" not in text
    assert text.rstrip().endswith("error: the build failed")


def test_cmake_error_is_shown(plan: Plan) -> None:
    (plan.project.root / "CMakeLists.txt").write_text('message(FATAL_ERROR "no such thing")\n')
    with pytest.raises(BuildError, match="no such thing"):
        build(plan)


def test_failed_configuration_is_tried_again(plan: Plan) -> None:
    good = (plan.project.root / "CMakeLists.txt").read_text()
    (plan.project.root / "CMakeLists.txt").write_text('message(FATAL_ERROR "no such thing")\n')
    with pytest.raises(BuildError):
        build(plan)
    (plan.project.root / "CMakeLists.txt").write_text(good)
    assert len(build(plan)) == 3


def test_second_process_waits_for_the_first(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def second() -> None:
        with exclusive(plan.folder):
            order.append("second")

    with exclusive(plan.folder):
        waiter = threading.Thread(target=second)
        waiter.start()
        time.sleep(0.2)
        order.append("first")
    waiter.join(10)
    assert order == ["first", "second"]
    assert "waiting for another build" in capsys.readouterr().err


def test_folder_that_cannot_be_written_is_a_message(tmp_path: Path) -> None:
    blocker = tmp_path / "build"
    blocker.write_text("a file where the folder should be")
    with pytest.raises(BuildError, match="cannot write to"), exclusive(blocker / "host"):
        pass


def test_missing_program_names_the_remedy() -> None:
    with pytest.raises(BuildError, match=r"pip install no-such-program"):
        find_program("no-such-program")


def test_programs_of_this_environment_come_first() -> None:
    beside = Path(sys.executable).parent / "ninja"
    if beside.exists():
        assert find_program("ninja") == str(beside)
    else:
        assert Path(find_program("ninja")).name == "ninja"


def test_unknown_target_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(command, ["--target", "toaster"])
    assert result.exit_code == 2
    assert "'host'" in result.output


def test_root_is_the_nearest_folder_with_an_operator_list(tmp_path: Path) -> None:
    (tmp_path / OPERATOR_LIST).parent.mkdir()
    (tmp_path / OPERATOR_LIST).write_text("- func: tril\n")
    inside = tmp_path / "kernels" / "deep"
    inside.mkdir(parents=True)
    assert find_root(inside) == tmp_path
    assert find_project(inside).kernels == tmp_path / "kernels"


def test_outside_any_project_the_installed_tree_is_used(tmp_path: Path) -> None:
    assert find_root(tmp_path) == Path(__file__).resolve().parents[2]


def test_clean_starts_over_and_keeps_the_lock(plan: Plan) -> None:
    build(plan)
    lock = (plan.folder / ".opgen-build.lock").stat().st_ino
    (plan.folder / "left over").write_text("")
    run(plan, clean=True)
    assert not (plan.folder / "left over").exists()
    assert (plan.folder / "CMakeFiles" / "sample.dir" / "a.cpp.o").exists()
    assert (plan.folder / ".opgen-build.lock").stat().st_ino == lock
