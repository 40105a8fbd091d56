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

# mcc is run from its folder, not installed.
from source import SourceError  # noqa: E402
from translate import rewrite  # noqa: E402

CXX = os.environ.get("CXX", "g++")
needs_compiler = pytest.mark.skipif(shutil.which(CXX.split()[0]) is None, reason="no C++ compiler")


def config(text: str, kernel: str) -> str:
    site = f'::musa::host::LaunchSite{{"{kernel}", __FILE__, __LINE__}}'
    return f"::musa::host::launch({site}, ::musa::host::LaunchConfig({text})"


def call(kernel: str) -> str:
    return f", [=](const auto&... mcc_args) {{ {kernel}(mcc_args...); }}"


GOLDENS = {
    "plain": ("k<<<1, 2>>>(a, b);", config("1, 2", "k") + call("k") + ", a, b);"),
    "no arguments": ("k<<<g, b, 0, s>>>();", config("g, b, 0, s", "k") + call("k") + ");"),
    "template arguments": (
        "ns::k<T, (4 > 3), f(a)><<<1, 2>>>(x);",
        config("1, 2", "ns::k<T, (4 > 3), f(a)>") + call("ns::k<T, (4 > 3), f(a)>") + ", x);",
    ),
    "nested template arguments": (
        "k<A<B<int>>><<<1, 2>>>(x);",
        config("1, 2", "k<A<B<int>>>") + call("k<A<B<int>>>") + ", x);",
    ),
    "nested parentheses": (
        "k<<<dim3((n + 3) / 4, f(a, b)), c[i], 0, g()>>>(h(1), {2});",
        config("dim3((n + 3) / 4, f(a, b)), c[i], 0, g()", "k") + call("k") + ", h(1), {2});",
    ),
    "after return and in a lambda": (
        "return k<<<1, 1>>>(p);\nauto f = [&] { ::k<<<1, 1>>>(p); };",
        "return "
        + config("1, 1", "k")
        + call("k")
        + ", p);\nauto f = [&] { "
        + config("1, 1", "::k")
        + call("::k")
        + ", p); };",
    ),
    "strings and comments": (
        'auto s = "k<<<1, 1>>>(p)"; // k<<<1, 1>>>(p)\nauto r = R"x(k<<<1,1>>>(p))x"; /* k<<<1, 1>>>(p) */',
        'auto s = "k<<<1, 1>>>(p)"; // k<<<1, 1>>>(p)\nauto r = R"x(k<<<1,1>>>(p))x"; /* k<<<1, 1>>>(p) */',
    ),
    "in a macro of several lines": (
        "#define GO(T) k<T,\\\n  4>\\\n <<<1,\\\n 2>>>(\\\n a);\nint i;",
        "#define GO(T) " + config("\\\n\\\n1,\\\n 2", "k<T, 4>") + call("k<T, 4>") + ", \\\n a);\nint i;",
    ),
    "shifts and templates that only look alike": (
        "int a = b << c; int d = e >> f; A<B<C<int>>> g; x <<= 1;",
        "int a = b << c; int d = e >> f; A<B<C<int>>> g; x <<= 1;",
    ),
}


@pytest.mark.parametrize("source, expected", GOLDENS.values(), ids=GOLDENS)
def test_golden(source: str, expected: str) -> None:
    assert rewrite(source, "k.mu") == expected


def variable(name: str, kind: str, dimensions: str = "") -> str:
    """What `__shared__ KIND NAME DIMENSIONS;` becomes."""
    held = kind + dimensions
    reference = f"(&{name}){dimensions}" if dimensions else f"&{name}"
    facts = f'"{name}", sizeof({held}), alignof({held})'
    return (
        f"static constexpr ::musa::host::SharedVariable {name}_musa_shared{{{facts}}}; "
        f"{kind} {reference} = ::musa::host::shared<{held}>({name}_musa_shared);"
    )


SHARED = {
    "array": ("void k() { __shared__ float a[4][8]; }", "void k() { " + variable("a", "float", "[4][8]") + " }"),
    "two declarators": (
        "void k() { __shared__ int a[4], b; }",
        "void k() { " + variable("a", "int", "[4]") + " " + variable("b", "int") + " }",
    ),
    "the word behind the type": ("void k() { float __shared__ a; }", "void k() { " + variable("a", "float") + " }"),
    "template type": (
        "void k() { __shared__ typename R<T, 4>::Temp t; }",
        "void k() { " + variable("t", "typename R < T , 4 > :: Temp") + " }",
    ),
    "member function": (
        "struct S { void f() const { __shared__ int a; } };",
        "struct S { void f() const { " + variable("a", "int") + " } };",
    ),
    "dynamic": (
        "void k() { extern __shared__ float s[]; }",
        "void k() { float (&s)[] = ::musa::host::dynamic_shared_array<float>(); }",
    ),
    "dynamic, outside a function": (
        "extern __shared__ float s[];",
        "static constexpr ::musa::host::DynamicShared<float> s{};",
    ),
    "in a macro": (
        "#define SMEM(T, n) extern __shared__ char n##_raw[]; T* n\n",
        "#define SMEM(T, n) char (&n##_raw)[] = ::musa::host::dynamic_shared_array<char>(); T* n\n",
    ),
    "a macro that is no declaration": ("#define SMEM __shared__\nint x;", "#define SMEM __shared__\nint x;"),
    "strings and comments": (
        'auto s = "__shared__ x;"; // __shared__ y;',
        'auto s = "__shared__ x;"; // __shared__ y;',
    ),
    "noinline": (
        "__noinline__ void f(); __attribute__((__noinline__)) void g();",
        "__attribute__((noinline)) void f(); __attribute__((__noinline__)) void g();",
    ),
    "launch by pointer": (
        "musaLaunchKernel((void*)k<float>, g, b, p); musaLaunchKernel(reinterpret_cast<const void*>(&k), g, b, p);",
        'musaLaunchKernel(::musa::host::LaunchSite{"k<float>", __FILE__, __LINE__}, k<float>, g, b, p); '
        'musaLaunchKernel(::musa::host::LaunchSite{"k", __FILE__, __LINE__}, &k, g, b, p);',
    ),
}


@pytest.mark.parametrize("source, expected", SHARED.values(), ids=SHARED)
def test_golden_of_shared_memory_and_the_rest(source: str, expected: str) -> None:
    assert rewrite(source, "k.mu") == expected


def test_lines_keep_their_numbers() -> None:
    source = (
        "int before;\nkernel<float,\n       4>\n    <<<grid,\n       block>>>(\n        a,\n        b);\nint after;\n"
    )
    result = rewrite(source, "k.mu")
    assert result.count("\n") == source.count("\n")
    assert result.splitlines()[7] == "int after;"


@pytest.mark.parametrize(
    "source, message",
    [
        ("void f() {\n  <<<1, 2>>>(a);\n}", "k.mu:2:3: error: '<<<' must follow the name of a kernel"),
        ("k<<<1, 2;\n", "k.mu:1:2: error: '<<<' without its '>>>'"),
        ("k<<<1, 2>>>;\n", "k.mu:1:12: error: the arguments of the kernel must follow '>>>'"),
        ("__shared__ int x;", "k.mu:1:1: error: shared variable 'x' outside a function: the host stand-in needs it"),
        ("void f() {\n  __shared__ int x = 3;\n}", "k.mu:2:20: error: shared variable 'x' cannot be initialized"),
        ("void f() { extern __shared__ int x; }", "k.mu:1:19: error: 'extern __shared__' declares an array without"),
        ("void f() { __shared__ x", "k.mu:1:12: error: '__shared__' without the ';' that ends its declaration"),
        ("void f() { __shared__; }", "k.mu:1:12: error: '__shared__' must stand in the declaration of a variable"),
    ],
)
def test_refusals_name_the_place(source: str, message: str) -> None:
    with pytest.raises(SourceError) as info:
        rewrite(source, "k.mu")
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


def test_a_folder_of_headers_is_translated_whole_and_again_only_where_it_changed(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    (source / "a").mkdir(parents=True)
    (source / "a/k.muh").write_text("inline void f() { k<<<1, 1>>>(); }\n")
    (source / "a/t.h").write_text("template <class T> void g() { k<T><<<1, 1>>>(); }\n")
    (source / "gone.muh").write_text("\n")

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(MCC), "--translate", str(source), "-o", str(target)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run().returncode == 0
    assert "::musa::host::launch" in (target / "a/k.muh").read_text()
    # A .h may be included by the host's compiler, which has none of the kernel side.
    assert "musa_kernel_host.h" in (target / "a/k.muh").read_text()
    assert "musa_kernel_host.h" not in (target / "a/t.h").read_text()
    assert "::musa::host::launch" in (target / "a/t.h").read_text()
    before = (target / "a/k.muh").stat().st_mtime_ns
    (source / "gone.muh").unlink()
    (source / "broken.muh").write_text("void f() { <<<1, 1>>>(); }\n")
    again = run()
    assert again.returncode == 1 and "broken.muh:1" in again.stderr
    assert (target / "a/k.muh").stat().st_mtime_ns == before and not (target / "gone.muh").exists()


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
    folder = libraries()
    (tmp_path / "run.mu").write_text(RUN)
    done = mcc(tmp_path / "run.mu", "-o", tmp_path / "run", f"-L{folder}", "-lmusart", f"-Wl,-rpath,{folder}")
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


HEADER = """
#pragma once
#include "deep/inner.muh"
template <typename T>
__device__ T doubled_by_neighbour(T value) {
  __shared__ T values[64];
  values[threadIdx.x] = value;
  __syncthreads();
  return scaled(values[(threadIdx.x + 1) % blockDim.x]);
}
inline void launch_twice(int* out);
"""
INNER = "template <typename T> __device__ __noinline__ T scaled(T value) { return 2 * value; }\n"
WITH_HEADER = """
#include "parts/ops.muh"
#include <musa_runtime.h>
#include <cstdio>
#include <vector>
__global__ void k(int* out) { out[threadIdx.x] = doubled_by_neighbour<int>(threadIdx.x); }
int main() {
  int* out;
  musaMalloc(&out, 64 * sizeof(int));
  k<<<1, 64>>>(out);
  std::vector<int> got(64);
  musaMemcpy(got.data(), out, 64 * sizeof(int), musaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i) if (got[i] != 2 * ((i + 1) % 64)) return 1;
  std::puts("ok");
}
"""


def libraries() -> Path:
    found = sorted(ROOT.glob("build/host-torch*/lib/libmusart.so"))
    if not found:
        pytest.skip("no libmusart: run `opgen build` first")
    return found[-1].parent


@needs_compiler
def test_headers_in_the_dialect_are_rewritten_where_they_are_included(tmp_path: Path) -> None:
    folder = libraries()
    (tmp_path / "parts/deep").mkdir(parents=True)
    (tmp_path / "parts/ops.muh").write_text(HEADER)
    (tmp_path / "parts/deep/inner.muh").write_text(INNER)
    (tmp_path / "run.mu").write_text(WITH_HEADER)
    done = mcc(tmp_path / "run.mu", "-o", tmp_path / "run", f"-L{folder}", "-lmusart", f"-Wl,-rpath,{folder}")
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@needs_compiler
def test_a_fault_in_a_header_names_the_header(tmp_path: Path) -> None:
    (tmp_path / "ops.muh").write_text("inline void f() {\n  __shared__ int x = 1;\n}\n")
    (tmp_path / "k.mu").write_text('#include "ops.muh"\n')
    done = mcc("-fsyntax-only", tmp_path / "k.mu")
    assert done.returncode == 1
    assert f"{tmp_path}/ops.muh:2:20: error: shared variable 'x' cannot be initialized" in done.stderr
