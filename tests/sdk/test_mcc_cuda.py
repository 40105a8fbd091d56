"""mcc on CUDA, with an nvcc made up for the test: it writes down how it was called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MCC = ROOT / "sdk/cuda/mcc"

RECORDER = f"""#!{sys.executable}
import json, sys
from pathlib import Path
Path(__file__).with_name("call.json").write_text(json.dumps(sys.argv[1:]))
sys.exit(3 if "fails.mu" in sys.argv else 0)
"""


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """A folder for CUDA_HOME."""
    nvcc = tmp_path / "cuda/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(RECORDER)
    nvcc.chmod(0o755)
    return tmp_path / "cuda"


def mcc(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, MCC, *arguments]
    return subprocess.run(command, env={"PATH": "/nowhere", **environment}, capture_output=True, text=True, check=False)


def called(toolkit: Path, *arguments: str, **environment: str) -> list[str]:
    """How nvcc was called, with the project's own folder taken out."""
    done = mcc(*arguments, CUDA_HOME=str(toolkit), **environment)
    assert done.returncode == 0, done.stderr
    words = json.loads((toolkit / "bin/call.json").read_text())
    return [word.replace(str(ROOT), "<root>") for word in words]


def test_a_kernel_is_compiled_with_the_dialects_names_in_front(toolkit: Path) -> None:
    assert called(toolkit, "-c", "kernel.mu", "-o", "kernel.o") == [
        *("-x", "cu", "-arch=native", "-std=c++20", "-O2", "--extended-lambda", "--expt-relaxed-constexpr"),
        *("-cudart", "shared", "-include", "<root>/sdk/cuda/include/musa_kernel_cuda.h"),
        *("-c", "kernel.mu", "-o", "kernel.o", "-I<root>/sdk/cuda/include", "-I<root>/sdk/include"),
    ]


def test_flags_go_to_the_compiler_that_knows_them(toolkit: Path) -> None:
    words = called(
        toolkit, "-fPIC", "-Wall", "-DX=1", "-I", "a", "-Wl,-rpath,b", "-lmusart", "--offload-arch=mp_31", "k.mu"
    )
    own = words[words.index("<root>/sdk/cuda/include/musa_kernel_cuda.h") + 1 : -2]
    assert own == [
        *("-Xcompiler", "-fPIC", "-Xcompiler", "-Wall", "-DX=1", "-I", "a"),
        *("-Xlinker", "-rpath,b", "-lmusart", "k.mu"),
    ]


def test_of_several_optimization_levels_the_last_goes_on_alone(toolkit: Path) -> None:
    words = called(toolkit, "-O0", "-c", "k.mu", "-O3", "-o", "k.o")
    assert [word for word in words if word.startswith("-O")] == ["-O3"]
    words = called(toolkit, "-c", "k.mu", "-MF", "-Odd.d", "-O1")
    assert words[words.index("-MF") + 1] == "-Odd.d" and "-O1" in words and "-O2" not in words


def test_paths_reach_their_file_through_nvccs_shell(toolkit: Path) -> None:
    words = called(toolkit, "-c", "it's a $b `c/k.mu", "-o", "$HOME/k.o")
    assert words[words.index("-c") + 1] == "it's a \\$b \\`c/k.mu" and words[words.index("-o") + 1] == "\\$HOME/k.o"


@pytest.mark.parametrize(("given", "expected"), [("90", "-arch=sm_90"), ("sm_80", "-arch=sm_80")])
def test_the_card_may_be_elsewhere(toolkit: Path, given: str, expected: str) -> None:
    assert expected in called(toolkit, "-c", "k.mu", "-o", "k.o", MUSA_CUDA_ARCH=given)


def test_nvccs_failure_is_mccs(toolkit: Path) -> None:
    assert mcc("-c", "fails.mu", CUDA_HOME=str(toolkit)).returncode == 3


@pytest.mark.parametrize("arguments", [["-c", "a.cu"], ["a.mu", "b.mu"]])
def test_one_source_is_compiled_at_a_time(toolkit: Path, arguments: list[str]) -> None:
    done = mcc(*arguments, CUDA_HOME=str(toolkit))
    assert done.returncode == 2 and "one .mu file is needed" in done.stderr


@pytest.mark.parametrize("environment", [{"CUDA_HOME": "/nowhere"}, {"NVCC": "/nowhere/nvcc"}])
def test_without_nvcc_it_is_said_where_it_was_looked_for(environment: dict[str, str]) -> None:
    done = mcc("-c", "k.mu", **environment)
    assert done.returncode == 2 and "/nowhere" in done.stderr and "Traceback" not in done.stderr
