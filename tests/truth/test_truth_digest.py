"""A digest changes with what an overload's verdict depends on, and with nothing else."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from opgen.build import find_program
from opgen.diagnostics import Diagnostics
from opgen.gen import Sources, analyse
from opgen.project import Project, find_project
from opgen.truth.digest import Digests, holds, load_digests
from opgen.truth.harness import HarnessDigests, split_table
from opgen.truth.record import Record

OPS = (
    "tril",
    "tril_",
    "tril.out",
    "triu.out",
    "add.Tensor",
    "lerp.Scalar",
    "mm",
    "dot",
    "sum.dim_IntList",
    "exp",
    "musa::swiglu",
)


def digests_of(root: Path) -> Digests:
    sources = Sources.of(Project(root))
    return load_digests(sources, analyse(sources, Diagnostics(), draft=True), "host")


def touched(root: Path, file: str, old: str, new: str) -> set[str]:
    """The overloads whose digests differ once ``old`` has become ``new`` in a file."""
    before = _as_it_is(root)
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    after = _told(root)
    path.write_text(text, encoding="utf-8")
    return {op for op in OPS if before[op] != after[op]}


def _told(root: Path) -> dict[str, str]:
    digests = digests_of(root)
    return {op: digests.of(op) for op in OPS}  # files are read when they are asked for


_as_it_is = functools.cache(_told)


@pytest.fixture(scope="module")
def here() -> Digests:
    return digests_of(find_project().root)


def test_another_checkout_of_the_same_sources_has_the_same_digests(checkout: Path, here: Digests) -> None:
    there = digests_of(checkout)
    assert {op: there.of(op) for op in OPS} == {op: here.of(op) for op in OPS}
    assert len({here.of(op) for op in OPS}) == len(OPS)


def test_a_kernel_touches_its_own_overloads(checkout: Path) -> None:
    assert touched(checkout, "kernels/mudnn/Tril.cpp", "#include", "// x\n#include") == {"tril", "tril_", "tril.out"}
    assert touched(checkout, "kernels/ported/Lerp.cu", "#include", "// x\n#include") == {"lerp.Scalar"}


def test_a_header_and_the_source_beside_it_touch_all_that_include_it(checkout: Path) -> None:
    expected = {"tril", "tril_", "tril.out", "triu.out"}
    assert touched(checkout, "kernels/mudnn/Triangle.h", "#pragma once", "#pragma once\n") == expected
    assert touched(checkout, "kernels/mudnn/Triangle.cpp", "#include", "// x\n#include") == expected


def test_a_kernel_that_is_called_by_name_touches_its_callers(checkout: Path) -> None:
    found = touched(checkout, "kernels/ported/ComplexArithmeticKernels.cu", "#include", "// x\n#include")
    assert "add.Tensor" in found and not {"tril.out", "exp", "mm"} & found


def test_a_class_of_the_toolkit_touches_the_kernels_that_name_it(checkout: Path) -> None:
    found = touched(checkout, "sdk/mudnn/MatMul.cpp", "#include", "// x\n#include")
    assert "mm" in found and not {"tril.out", "exp", "lerp.Scalar"} & found
    assert "sum.dim_IntList" in touched(checkout, "sdk/mudnn/Reduce.cpp", "#include", "// x\n#include")


def test_the_kernel_language_is_part_of_kernels_in_cuda_dialect_alone(here: Digests) -> None:
    assert {op for op in OPS if "sdk/host/kernel/Block.cpp" in here.sources(op)} == {
        op for op in OPS if any(path.endswith(".cu") for path in here.sources(op))
    }
    assert "sdk/host/kernel/Block.cpp" in here.sources("lerp.Scalar") - here.sources("tril.out")


def test_what_every_call_goes_through_touches_all(checkout: Path) -> None:
    for file in ("torch_musa/csrc/core/MUSACachingAllocator.cpp", "kernels/mudnn/Copy.cpp"):
        assert touched(checkout, file, "#include", "// x\n#include") == set(OPS)


def test_an_entry_touches_its_group_and_another_line_of_the_list_nothing(checkout: Path) -> None:
    listed = "yaml/musa_functions.yaml"
    assert touched(checkout, listed, "- func: ", "# a comment\n\n- func: ") == set()
    entry = "- func: dot\n  device_check: ExactSame\n"
    assert touched(checkout, listed, entry, "- func: dot\n") == {"dot"}


def test_operators_that_ran_inside_count_too(checkout: Path) -> None:
    """A composite overload has no source of its own: what it calls is what it is worth."""

    def told() -> list[str]:
        digests = digests_of(checkout)
        return [digests.of("_foreach_add.List", ran) for ran in ((), ("add.Tensor", "empty.memory_format"), ("mm",))]

    before, kernel = told(), checkout / "kernels/mudnn/AddSub.cpp"
    text = kernel.read_text(encoding="utf-8")
    kernel.write_text(f"{text}// x\n", encoding="utf-8")
    after = told()
    kernel.write_text(text, encoding="utf-8")
    assert len(set(before)) == 3
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]


def test_a_record_holds_for_its_release_target_and_chip_alone(here: Digests) -> None:
    record = Record("tril", here.torch, "host", "c", 0, "cpu", here.of("tril", ("arange",)), 1.0, calls=("arange",))
    assert holds(record, here)
    assert not holds(replace(record, calls=()), here)
    assert not holds(record, replace(here, torch="2.14.1", _kernels={}))
    assert not holds(record, replace(here, target="cuda", _kernels={}))
    assert not holds(record, replace(here, arch="mp_22", _kernels={}))


def test_the_closure_has_at_least_what_the_compiler_read(here: Digests) -> None:
    """The compiler's dependency files of this build, where there is one, name no project file that is not counted."""
    project = find_project()
    folder = project.build("host", here.torch)
    if not (folder / "build.ninja").is_file():
        pytest.skip("nothing has been built here by `opgen build`")
    command = [find_program("ninja"), "-C", str(folder), "-t", "deps"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    compared = 0
    for block in text.split("\n\n"):
        lines = [line.strip() for line in block.splitlines()]
        read = {_of_project(line, folder, project.root) for line in lines[1:]} - {None}
        sources = [path for path in read if path and path.endswith(".cpp") and path.startswith("kernels/mudnn/")]
        if len(sources) == 1:
            compared += 1
            common = {path for path in read if path and path.startswith("torch_musa/csrc/aten/")}
            assert read <= here.tree.closure(sources[0]) | common, sources
    assert compared > 20 or not text.strip()


def _of_project(line: str, folder: Path, root: Path) -> str | None:
    path = (folder / line).resolve()  # an absolute one stays as it is
    if not path.is_relative_to(root):
        return None
    name = path.relative_to(root).as_posix()
    return None if name.startswith(("build/", "generated/", ".venv")) else name


def test_what_is_edited_while_operators_run_is_not_what_was_run(checkout: Path) -> None:
    frozen, kernel = digests_of(checkout).freeze(), checkout / "kernels/mudnn/Tril.cpp"
    text = kernel.read_text(encoding="utf-8")
    kernel.write_text(f"{text}// x\n", encoding="utf-8")
    told = frozen.of("tril"), digests_of(checkout).of("tril")
    kernel.write_text(text, encoding="utf-8")
    assert told[0] == _as_it_is(checkout)["tril"] != told[1]


# ---- the test bench


SECTION = """\
from x import y

SHARED = 1
TABLE = {
    # why
    "mm bmm": Domain(a=SHARED),
    "tril": Domain(
        b=2,
    ),
}
"""


def test_a_section_is_split_into_the_lines_of_its_table_and_the_rest() -> None:
    lines, rest = split_table(SECTION)
    assert set(lines) == {"mm", "bmm", "tril"} and lines["mm"] == lines["bmm"] == "Domain(a=SHARED)"
    assert "SHARED = 1" in rest and "Domain" not in rest
    assert split_table(SECTION.replace("b=2", "b=3"))[1] == rest
    assert split_table(SECTION.replace('    "tril"', '    "triu": Domain(),\n    "tril"'))[1] == rest
    assert split_table("x = 1\n") == ({}, "x = 1")


def test_a_line_of_the_table_touches_the_operators_that_it_names_and_the_comparison_all(tmp_path: Path) -> None:
    (tmp_path / "testing" / "domains").mkdir(parents=True)
    (tmp_path / "truth").mkdir()
    for name in ("judging.py", "probe.py"):
        (tmp_path / "truth" / name).write_text("")
    section, compare = tmp_path / "testing" / "domains" / "some.py", tmp_path / "testing" / "compare.py"
    section.write_text(SECTION)
    compare.write_text("tolerance = 1\n")
    ops = ("mm", "bmm.out", "tril_", "tril.out", "exp", "musa::tril")

    def changed() -> set[str]:
        now = HarnessDigests(tmp_path)
        found = {op for op in ops if now.of(op) != before.of(op)}
        section.write_text(SECTION)
        return found

    before = HarnessDigests(tmp_path)
    section.write_text(SECTION.replace("b=2", "b=3"))
    assert changed() == {"tril_", "tril.out"}
    section.write_text(SECTION.replace("SHARED = 1", "SHARED = 2"))
    assert changed() == {"mm", "bmm.out", "tril_", "tril.out"}
    compare.write_text("tolerance = 2\n")
    assert changed() == set(ops)


def test_every_line_of_the_real_table_is_seen() -> None:
    """The text says the same as the table that the test bench reads."""
    from opgen.testing import domains

    digests = HarnessDigests(find_project().root / "opgen")
    assert digests._lines.keys() == domains._table().keys()
