"""`opgen build --target musa`, with a toolkit made up for the test: its compiler writes down how it was called.

No card was at hand, nor a toolkit: what comes out of mcc is not tested here, but that it is asked for the right thing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from opgen.build import BuildError, Plan, run
from opgen.device_options import DeviceOptions
from opgen.project import Project

ROOT = Path(__file__).resolve().parents[2]

# The part of the project's own lists that concerns the toolkit.
LISTS = f"""cmake_minimum_required(VERSION 3.27)
project(sample LANGUAGES CXX)
set(TORCH_INCLUDE_DIRS ${{TORCH_DIR}}/include)
include({ROOT}/sdk/musa/Toolkit.cmake)
include({ROOT}/cmake/MusaKernels.cmake)
add_subdirectory({ROOT}/sdk/musa toolkit)
set(kernels ${{CMAKE_BINARY_DIR}}/ported/kernels/a.mu ${{CMAKE_BINARY_DIR}}/ported/kernels/b.mu)
foreach(kernel IN LISTS kernels)
  get_filename_component(name ${{kernel}} NAME_WE)
  add_custom_command(OUTPUT ${{kernel}}
    COMMAND ${{CMAKE_COMMAND}} -E copy ${{CMAKE_SOURCE_DIR}}/${{name}}.cu ${{kernel}}
    DEPENDS ${{CMAKE_SOURCE_DIR}}/${{name}}.cu)
endforeach()
opgen_compile_kernels(objects INCLUDE ${{CMAKE_BINARY_DIR}}/ported SOURCES ${{kernels}})
add_library(sample SHARED host.cpp ${{objects}})
target_link_libraries(sample PRIVATE mudnn musart)
"""

# Takes the place of mcc: one line of JSON a call, an object without code, and the dependency file of a compiler.
RECORDER = f"""#!{sys.executable}
import json, subprocess, sys
from pathlib import Path
words = sys.argv[1:]
with Path(__file__).with_name("calls.jsonl").open("a") as calls:
    calls.write(json.dumps(words) + "\\n")
source, output = words[words.index("-c") + 1], words[words.index("-o") + 1]
if "syntax error" in Path(source).read_text():
    sys.exit(f"{{source}}:1:1: error: unknown type name 'syntax'")
subprocess.run(["g++", "-x", "c++", "-fPIC", "-c", "/dev/null", "-o", output], check=True)
header = Path(__file__).parents[1] / "include/musa.h"
Path(words[words.index("-MF") + 1]).write_text(f"{{output}}: {{source}} {{header}}\\n")
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A toolkit."""
    home = tmp_path / "musa"
    for folder in ("bin", "lib", "include"):
        (home / folder).mkdir(parents=True)
    (home / "bin/mcc").write_text(RECORDER)
    (home / "bin/mcc").chmod(0o755)
    (home / "include/musa.h").write_text("\n")
    first = home / "lib/libmusart.so"
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", first], check=True)
    for library in ("murand", "mudnn"):
        shutil.copy(first, home / f"lib/lib{library}.so")
    return home


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    (root / "CMakeLists.txt").write_text(LISTS)
    (root / "host.cpp").write_text("int host() { return 1; }\n")
    for name in "ab":
        (root / f"{name}.cu").write_text("__global__ void kernel() {}\n")
    return Project(root)


def plan(project: Project, home: Path, device: DeviceOptions, build_type: str = "Release") -> Plan:
    torch = project.root.parent / "torch"
    return Plan(project, torch, "2.13.0", "musa", 1, build_type=build_type, toolkit=home, device=device)


def calls(home: Path) -> list[list[str]]:
    """The command lines so far; they begin anew."""
    record = home / "bin/calls.jsonl"
    lines = record.read_text().splitlines() if record.exists() else []
    record.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def shown(call: list[str], project: Project) -> str:
    """One word of the command a line, with the names of this test's folders taken out."""
    words = "\n".join(call).replace(str(project.root), "<root>").replace(str(project.root.parent), "<tmp>")
    return words.replace("<root>/build/musa-torch2.13.0", "<build>")


def test_the_command_line_of_a_kernel(project: Project, home: Path) -> None:
    run(plan(project, home, DeviceOptions()))
    first, second = sorted(calls(home), key=lambda call: call[call.index("-c") + 1])
    assert first == [word.replace("/b.mu", "/a.mu") for word in second]
    assert_expected_inline(
        shown(first, project),
        """\
-x
musa
-mtgpu
-std=c++20
-fPIC
-O2
-DNDEBUG
--offload-arch=mp_31
-DAT_PER_OPERATOR_HEADERS
-include
<root>/torch_musa/csrc/porting/device_prelude.h
-I<build>/ported
-I<root>
-I<root>/generated/torch2.13.0/include
-I<root>/torch_musa/csrc/porting
-I<tmp>/musa/include
-I<tmp>/torch/include
-MD
-MF
<build>/objects/ported/kernels/a.mu.o.d
-c
<build>/ported/kernels/a.mu
-o
<build>/objects/ported/kernels/a.mu.o""",
    )


def test_every_option_reaches_the_command_line(project: Project, home: Path) -> None:
    def words(device: DeviceOptions, build_type: str = "Release") -> list[str]:
        run(plan(project, home, device, build_type))
        return next(call for call in calls(home) if call[call.index("-c") + 1].endswith("a.mu"))

    default = words(DeviceOptions())

    def difference(mine: list[str]) -> list[str]:
        """What the default's command line has and this one has not, then the reverse."""
        return [f"less {w}" for w in default if w not in mine] + [w for w in mine if w not in default]

    chips = DeviceOptions(("21", "22", "31"))
    assert difference(words(chips)) == ["--offload-arch=mp_21", "--offload-arch=mp_22"]
    assert difference(words(DeviceOptions(fp64=True))) == ["-DENABLE_COMPILE_FP64=1"]
    assert difference(words(DeviceOptions(), "Debug")) == ["less -O2", "less -DNDEBUG", "-O0", "-g"]
    # The sanitizer is for the host side of a kernel's source: device code has no such thing.
    sanitized = difference(words(DeviceOptions(asan=True)))
    assert sanitized == ["-Xarch_host", "-fsanitize=address", "-fno-omit-frame-pointer"]


def test_only_what_changed_is_compiled_again(project: Project, home: Path) -> None:
    same = plan(project, home, DeviceOptions())
    run(same)
    assert len(calls(home)) == 2
    run(same)
    assert calls(home) == []
    (project.root / "a.cu").write_text("__global__ void other() {}\n")
    run(same)
    assert [call[call.index("-c") + 1][-4:] for call in calls(home)] == ["a.mu"]
    (home / "include/musa.h").write_text("// a new release\n")
    run(same)
    assert len(calls(home)) == 2


def test_what_mcc_says_reaches_the_user(project: Project, home: Path) -> None:
    (project.root / "b.cu").write_text("syntax error\n")
    with pytest.raises(BuildError, match=r"b\.mu:1:1: error: unknown type name 'syntax'"):
        run(plan(project, home, DeviceOptions()))


def test_the_library_finds_the_toolkits_libraries(project: Project, home: Path) -> None:
    run(plan(project, home, DeviceOptions()))
    built = plan(project, home, DeviceOptions()).folder / "libsample.so"
    assert built.exists()
    linked = (plan(project, home, DeviceOptions()).folder / "build.ninja").read_text()
    assert str(home / "lib/libmudnn.so") in linked


def test_a_toolkit_without_a_library_is_named(project: Project, home: Path) -> None:
    for library in ("mudnn", "murand", "musart"):
        (home / f"lib/lib{library}.so").unlink()
        with pytest.raises(BuildError, match=rf"No lib{library}\.so in\s+.*/musa/lib"):
            run(plan(project, home, DeviceOptions()), clean=True)
