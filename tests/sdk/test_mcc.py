"""mcc, the host's compiler driver for `.mu`: what a launch becomes, what it does when run, and what it refuses."""

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

from launches import SourceError, rewrite_launches  # noqa: E402 (mcc is run from its folder, not installed)

CXX = os.environ.get("CXX", "g++")
needs_compiler = pytest.mark.skipif(shutil.which(CXX.split()[0]) is None, reason="no C++ compiler")


def config(text: str) -> str:
    return f"::musa::host::launch(::musa::host::LaunchConfig({text})"


def call(kernel: str) -> str:
    return f", [=](const auto&... mcc_args) {{ {kernel}(mcc_args...); }}"


GOLDENS = {
    "plain": ("k<<<1, 2>>>(a, b);", config("1, 2") + call("k") + ", a, b);"),
    "no arguments": ("k<<<g, b, 0, s>>>();", config("g, b, 0, s") + call("k") + ");"),
    "template arguments": (
        "ns::k<T, (4 > 3), f(a)><<<1, 2>>>(x);",
        config("1, 2") + call("ns::k<T, (4 > 3), f(a)>") + ", x);",
    ),
    "nested template arguments": (
        "k<A<B<int>>><<<1, 2>>>(x);",
        config("1, 2") + call("k<A<B<int>>>") + ", x);",
    ),
    "nested parentheses": (
        "k<<<dim3((n + 3) / 4, f(a, b)), c[i], 0, g()>>>(h(1), {2});",
        config("dim3((n + 3) / 4, f(a, b)), c[i], 0, g()") + call("k") + ", h(1), {2});",
    ),
    "after return and in a lambda": (
        "return k<<<1, 1>>>(p);\nauto f = [&] { ::k<<<1, 1>>>(p); };",
        "return " + config("1, 1") + call("k") + ", p);\nauto f = [&] { " + config("1, 1") + call("::k") + ", p); };",
    ),
    "strings and comments": (
        'auto s = "k<<<1, 1>>>(p)"; // k<<<1, 1>>>(p)\nauto r = R"x(k<<<1,1>>>(p))x"; /* k<<<1, 1>>>(p) */',
        'auto s = "k<<<1, 1>>>(p)"; // k<<<1, 1>>>(p)\nauto r = R"x(k<<<1,1>>>(p))x"; /* k<<<1, 1>>>(p) */',
    ),
    "shifts and templates that only look alike": (
        "int a = b << c; int d = e >> f; A<B<C<int>>> g; x <<= 1;",
        "int a = b << c; int d = e >> f; A<B<C<int>>> g; x <<= 1;",
    ),
}


@pytest.mark.parametrize("source, expected", GOLDENS.values(), ids=GOLDENS)
def test_golden(source: str, expected: str) -> None:
    assert rewrite_launches(source, "k.mu") == expected


def test_lines_keep_their_numbers() -> None:
    source = (
        "int before;\nkernel<float,\n       4>\n    <<<grid,\n       block>>>(\n        a,\n        b);\nint after;\n"
    )
    result = rewrite_launches(source, "k.mu")
    assert result.count("\n") == source.count("\n")
    assert result.splitlines()[7] == "int after;"


@pytest.mark.parametrize(
    "source, message",
    [
        ("void f() {\n  <<<1, 2>>>(a);\n}", "k.mu:2:3: error: '<<<' must follow the name of a kernel"),
        ("k<<<1, 2;\n", "k.mu:1:2: error: '<<<' without its '>>>'"),
        ("k<<<1, 2>>>;\n", "k.mu:1:12: error: the arguments of the kernel must follow '>>>'"),
        (
            "__global__ void k() {\n  __shared__ float x[4];\n}",
            "k.mu:2:3: error: '__shared__': shared memory is of use only with a barrier",
        ),
        ("void k() {\n\n    __syncthreads();\n}", "k.mu:3:5: error: '__syncthreads': threads of a block run one after"),
    ],
)
def test_refusals_name_the_place(source: str, message: str) -> None:
    with pytest.raises(SourceError) as info:
        rewrite_launches(source, "k.mu")
    assert str(info.value).startswith(message)


def mcc(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MCC), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_translate_writes_only_what_changed(tmp_path: Path) -> None:
    source, target = tmp_path / "k.mu", tmp_path / "out/k.mu.cpp"
    source.write_text("int x;\n")
    assert mcc("--translate", source, "-o", target, "--presumed", "k.cu").returncode == 0
    assert target.read_text().endswith('#line 1 "k.cu"\nint x;\n')
    before = target.stat().st_mtime_ns
    assert mcc("--translate", source, "-o", target, "--presumed", "k.cu").returncode == 0
    assert target.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        (("--translate", "absent.mu", "-o", "x"), 1, "absent.mu: No such file or directory"),
        (("--translate", "a.mu"), 2, "one input and -o OUTPUT are needed"),
        (("-c", "a.cpp", "-o", "a.o"), 2, "one .mu file is needed, 0 given"),
    ],
)
def test_faults_of_the_command_line(arguments: tuple[str, ...], code: int, text: str) -> None:
    done = mcc(*arguments)
    assert done.returncode == code and text in done.stderr and "Traceback" not in done.stderr


def compile_only(source: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "k.mu"
    path.write_text(source)
    return mcc("-fsyntax-only", path)


@needs_compiler
def test_a_compiler_error_names_the_line_of_the_mu(tmp_path: Path) -> None:
    done = compile_only(
        "__global__ void k(int* p) {\n  p[threadIdx.x] = 1;\n}\n\nvoid f() {\n  k<<<1, 1>>>(oops);\n}\n", tmp_path
    )
    assert done.returncode != 0
    assert f"{tmp_path}/k.mu:6:" in done.stderr and "oops" in done.stderr


@needs_compiler
@pytest.mark.parametrize("statement", ["__syncthreads();", "__shared__ float x[4];"])
def test_headers_cannot_use_what_the_host_lacks(tmp_path: Path, statement: str) -> None:
    # A header is not mcc's input, so here it is the compiler that must say it clearly.
    (tmp_path / "h.h").write_text(f"inline void helper() {{ {statement} }}\n")
    done = compile_only('#include "h.h"\n', tmp_path)
    assert done.returncode != 0
    assert "the host stand-in runs the threads of a block one after the other" in done.stderr


RUN = """
#include <musa_runtime.h>
#include <cstdio>
#include <set>
#include <vector>

template <typename T>
__global__ void fill(T* out, unsigned int* blocks, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = static_cast<T>(i);
    blocks[i] = blockIdx.x;
  }
}

__global__ void volume(int* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  out[(z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x] += 1;
}

int main() {
  const int n = 100001;
  float* out;
  unsigned int* blocks;
  musaMalloc(&out, n * sizeof(float));
  musaMalloc(&blocks, n * sizeof(int));
  fill<<<(n + 255) / 256, 256>>>(out, blocks, n);
  if (musaDeviceSynchronize() != musaSuccess) return 1;
  std::vector<float> got(n);
  std::vector<unsigned int> where(n);
  musaMemcpy(got.data(), out, n * sizeof(float), musaMemcpyDeviceToHost);
  musaMemcpy(where.data(), blocks, n * sizeof(int), musaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) {
    if (got[i] != i || where[i] != i / 256u) return 2;
  }

  int* cells;
  musaMalloc(&cells, 6 * 8 * 10 * sizeof(int));
  musaMemset(cells, 0, 6 * 8 * 10 * sizeof(int));
  volume<<<dim3(3, 2, 5), dim3(2, 4, 2), 0, nullptr>>>(cells);
  std::vector<int> counts(6 * 8 * 10);
  musaMemcpy(counts.data(), cells, counts.size() * sizeof(int), musaMemcpyDeviceToHost);
  for (int count : counts) {
    if (count != 1) return 3;
  }

  // A bad configuration runs nothing and is the thread's last error, once.
  for (const dim3 block : {dim3(1025), dim3(0), dim3(32, 33)}) {
    volume<<<1, block>>>(nullptr);
    if (musaGetLastError() != musaErrorInvalidConfiguration || musaGetLastError() != musaSuccess) return 4;
  }
  volume<<<dim3(1, 65536), 1>>>(nullptr);
  if (musaGetLastError() != musaErrorInvalidConfiguration) return 5;
  std::puts("ok");
}
"""


@needs_compiler
def test_a_program_runs(tmp_path: Path) -> None:
    libraries = sorted(ROOT.glob("build/host-torch*/lib/libmusart.so"))
    if not libraries:
        pytest.skip("no libmusart: run `opgen build` first")
    folder = libraries[-1].parent
    (tmp_path / "run.mu").write_text(RUN)
    done = mcc(tmp_path / "run.mu", "-o", tmp_path / "run", f"-L{folder}", "-lmusart", f"-Wl,-rpath,{folder}")
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
