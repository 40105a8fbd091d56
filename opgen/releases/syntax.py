"""Does every C++ source of the tree parse against the headers of a PyTorch release? No library is needed for that.

CMake writes the commands that a build would run, so flags, ported sources, precompiled header and unity files are those
of the build; a compiler launcher turns each into a check, and Ninja keeps what has been checked already.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from opgen.build import BuildError, exclusive, find_program
from opgen.ninja import OnStep, run_ninja
from opgen.project import Project
from opgen.upstream import TorchInstall

__all__ = ["SyntaxResult", "check_syntax"]

_LAUNCHER = Path(__file__).with_name("syntax_only.py")


@dataclass(frozen=True)
class SyntaxResult:
    """What checking one release gave."""

    files: int
    """Translation units that there are: kernels (ported ones after porting), shards, device, bindings, toolkit."""
    checked: int
    """How many of them this run looked at; the others had not changed since they passed."""
    failed: tuple[str, ...]
    """Objects whose source did not pass, relative to the build folder."""
    text: str
    """What the compiler said."""
    compiler: str
    """Its name and version."""
    seconds: float


def check_syntax(project: Project, install: TorchInstall, jobs: int, on_step: OnStep) -> SyntaxResult:
    """Check all sources against `install`, what is generated for it included; the generated files must exist.

    Raises BuildError when there is nothing to check with, or CMake fails.
    """
    start = time.monotonic()
    folder = project.build("syntax", install.release)
    with exclusive(folder):
        _configure(project, install, folder)
        outputs = _outputs(folder)
        before = _stamps(folder, outputs)
        done = run_ninja(find_program("ninja"), folder, jobs, on_step, targets=outputs, keep_going=True)
        if done.code != 0 and not done.failed:
            raise BuildError("nothing was checked: Ninja failed", output=f"{done.text}{done.error}")
        after = _stamps(folder, outputs)
    return SyntaxResult(
        files=len(outputs),
        checked=sum(before[name] != after[name] or name in done.failed for name in outputs),
        failed=done.failed,
        text=done.text,
        compiler=_compiler(folder),
        seconds=time.monotonic() - start,
    )


def _configure(project: Project, install: TorchInstall, folder: Path) -> None:
    """CMake runs each time: it takes a second, and sees new files."""
    arguments = [
        *(find_program("cmake"), "-G", "Ninja", "-S", str(project.root), "-B", str(folder)),
        f"-DCMAKE_MAKE_PROGRAM={find_program('ninja')}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        f"-DTORCH_DIR={install.torch}",
        f"-DOPGEN_GENERATED={project.generated(install.release)}",
        "-DOPGEN_BUILD_TESTS=OFF",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{_LAUNCHER}",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError("CMake failed", output=f"{done.stdout}{done.stderr}")


def _outputs(folder: Path) -> list[str]:
    """The objects of all translation units, as Ninja calls them."""
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    outputs = (folder / command["output"] for command in commands)  # absolute ones stay as they are
    return sorted({path.relative_to(folder).as_posix() for path in outputs if "cmake_pch" not in path.name})


def _stamps(folder: Path, outputs: list[str]) -> dict[str, int | None]:
    return {name: (folder / name).stat().st_mtime_ns if (folder / name).exists() else None for name in outputs}


def _compiler(folder: Path) -> str:
    """`GNU 12.2.0`, as CMake found it."""
    said = next(folder.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")).read_text(encoding="utf-8")
    values = dict(line[4:-1].partition(" ")[::2] for line in said.splitlines() if line.startswith("set("))
    names = {"GNU": "g++", "Clang": "clang++", "AppleClang": "Apple clang++"}
    identity = values.get("CMAKE_CXX_COMPILER_ID", "").strip('"')
    return f"{names.get(identity, identity)} {values.get('CMAKE_CXX_COMPILER_VERSION', '').strip(chr(34))}"
