"""mcc: launch bounds and constant memory, which a card's compiler and driver enforce."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MCC = ROOT / "sdk/host/mcc"
sys.path.insert(0, str(MCC))

# mcc is run from its folder, not installed.
from translate import rewrite  # noqa: E402

CXX = os.environ.get("CXX", "g++")
needs_compiler = pytest.mark.skipif(shutil.which(CXX.split()[0]) is None, reason="no C++ compiler")


def note(name: str) -> str:
    arguments = f'::musa::host::constant_bytes_here, "{name}", __FILE__, __LINE__'
    return f" [[maybe_unused]] static const ::musa::host::Constant<decltype({name})> {name}_musa_constant({arguments});"


def check(bound: str) -> str:
    return f" ::musa::host::check_launch_bounds({bound});"


GOLDENS = {
    "bounds": (
        "__global__ void __launch_bounds__(256) k(int* p) { f(p); }",
        "__global__ void __launch_bounds__(256) k(int* p) {" + check("256") + " f(p); }",
    ),
    "bounds in front of the type, with blocks a multiprocessor": (
        "template <int N> __global__ __launch_bounds__(max(N, 32), 4) void k(g(*p)(int)) {}",
        "template <int N> __global__ __launch_bounds__(max(N, 32), 4) void k(g(*p)(int)) {" + check("max(N, 32)") + "}",
    ),
    "bounds of a declaration": (
        "__global__ void __launch_bounds__(256) k(int* p); void f() {}",
        "__global__ void __launch_bounds__(256) k(int* p); void f() {}",
    ),
    "bounds in a macro": ("#define B(n) __launch_bounds__(n)\nint x;", "#define B(n) __launch_bounds__(n)\nint x;"),
    "constant": ("__constant__ float t[64];", "__constant__ float t[64];" + note("t")),
    "constants, initialized, in a namespace": (
        "namespace a { namespace { static __constant__ const int t[2] = {1, 2}, u = 3; } }",
        "namespace a { namespace { static __constant__ const int t[2] = {1, 2}, u = 3;"
        + note("t")
        + note("u")
        + " } }",
    ),
    "constant of a type with arguments, braces and alignment": (
        "__constant__ __align__(16) std::array<int, 4> t{1, 2};",
        "__constant__ __align__(16) std::array<int, 4> t{1, 2};" + note("t"),
    ),
    "constant of a type defined on the spot": (
        "__constant__ struct P { int x; } p;",
        "__constant__ struct P { int x; } p;" + note("p"),
    ),
    "constant that has no size here": (
        "extern __constant__ int t[]; template <typename T> __constant__ T u; struct S { static __constant__ int v; };",
        "extern __constant__ int t[]; template <typename T> __constant__ T u; struct S { static __constant__ int v; };",
    ),
    "constant behind a macro with parameters": (
        "#define CHECK(x) do { if (x) fail(#x); } while (0)\n__constant__ float t[64];",
        "#define CHECK(x) do { if (x) fail(#x); } while (0)\n__constant__ float t[64];" + note("t"),
    ),
    "constant between directives": (
        "int a;\n#if N(2)\n__constant__ int t,\n#pragma unroll(4)\nu;\n#endif",
        "int a;\n#if N(2)\n__constant__ int t,\n#pragma unroll(4)\nu;" + note("t") + note("u") + "\n#endif",
    ),
    "constant in a macro": ("#define C __constant__\nC int x;", "#define C __constant__\nC int x;"),
}


@pytest.mark.parametrize("source, expected", GOLDENS.values(), ids=GOLDENS)
def test_golden_of_limits(source: str, expected: str) -> None:
    assert rewrite(source, "k.mu") == expected


PROGRAM = """
#include <musa_runtime.h>
#include <cstdio>
__constant__ char first[40000];
__constant__ char second[SECOND];
__global__ void k(int* out) { *out = first[1] + second[1]; }
int main() {
  int* out = nullptr;
  std::puts(musaGetErrorName(musaMalloc(&out, sizeof(int))));
  k<<<1, 1>>>(out);
  std::puts(musaGetErrorName(musaGetLastError()));
}
"""


def built(tmp_path: Path, second: int) -> subprocess.CompletedProcess[str]:
    found = sorted(ROOT.glob("build/host-torch*/lib/libmusart.so"))
    if not found:
        pytest.skip("no libmusart: run `opgen build` first")
    source = tmp_path / "run.mu"
    source.write_text(PROGRAM.replace("SECOND", str(second)))
    libraries = [f"-L{found[-1].parent}", "-lmusart", f"-Wl,-rpath,{found[-1].parent}"]
    command = [sys.executable, str(MCC), str(source), "-o", str(tmp_path / "run"), *libraries]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_compiler
def test_too_much_constant_memory_is_reported_at_the_start(tmp_path: Path) -> None:
    done = built(tmp_path, 65536 - 40000)
    assert done.returncode == 0, done.stderr
    run = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True)
    assert (run.stdout.split(), run.stderr) == (["musaSuccess", "musaSuccess"], "")
    assert built(tmp_path, 65536 - 40000 + 1).returncode == 0
    run = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["musaErrorInvalidDeviceFunction"] * 2
    assert (
        f"{tmp_path}/run.mu:5: with 'second' the __constant__ variables of this source have 65537 bytes" in run.stderr
    )


@needs_compiler
def test_a_constant_that_is_too_large_is_a_compile_error(tmp_path: Path) -> None:
    done = built(tmp_path, 65537)
    assert done.returncode != 0 and "more than the 64 KiB" in done.stderr
