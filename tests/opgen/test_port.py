"""The port step: one golden per family of rules, what must stay as it is, and what must be reported."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opgen.diagnostics import OpgenError
from opgen.port import Options, Rules, load_mapping, port_file, port_text, port_tree
from opgen.port.files import write_if_changed
from opgen.port.mapping import read_table

ROOT = Path(__file__).parents[2]
MAPPING = load_mapping()


def ported(source: str) -> str:
    result = port_text(source, MAPPING)
    assert result.problems == ()
    return result.text


def problems(source: str) -> list[str]:
    return [str(problem).splitlines()[0] for problem in port_text(source, MAPPING, "k.cu").problems]


GOLDENS = {
    "runtime": (
        "cudaError_t e = cudaMemcpy2DAsync(d, 8, s, 8, 4, 2, cudaMemcpyHostToDevice, stream); float x = CUDART_INF_F; "
        "cudaDataType_t t = CUDA_R_16BF; cudaGraphLaunch(g, s); cudaExtent x = make_cudaExtent(1, 2, 3);",
        "musaError_t e = musaMemcpy2DAsync(d, 8, s, 8, 4, 2, musaMemcpyHostToDevice, stream); float x = MUSART_INF_F; "
        "musaDataType_t t = MUSA_R_16BF; musaGraphLaunch(g, s); musaExtent x = make_musaExtent(1, 2, 3);",
    ),
    "driver": (
        "CUresult r = cuInit(0); CUstream s; cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, a, 0); "
        "if (r == CUDA_ERROR_OUT_OF_MEMORY || r != CUDA_SUCCESS) cuDeviceGet(CU_DEVICE_ATTRIBUTE_WARP_SIZE);",
        "MUresult r = muInit(0); MUstream s; muLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, a, 0); "
        "if (r == MUSA_ERROR_OUT_OF_MEMORY || r != MUSA_SUCCESS) muDeviceGet(MU_DEVICE_ATTRIBUTE_WARP_SIZE);",
    ),
    "cublas": (
        "#include <cublas_v2.h>\n#include <cublasLt.h>\ncublasHandle_t h; cublasSgemm_v2(h, CUBLAS_OP_N, CUBLAS_OP_T); "
        "cublasGemmEx(h, CUBLAS_COMPUTE_32F); cublasLtMatmul(l); return CUBLAS_STATUS_NOT_SUPPORTED;",
        "#include <mublas.h>\n#include <mublasLt.h>\nmublasHandle_t h; mublasSgemm(h, MUBLAS_OP_N, MUBLAS_OP_T); "
        "mublasGemmEx(h, MUBLAS_COMPUTE_32F); mublasLtMatmul(l); return MUBLAS_STATUS_NOT_IMPLEMENTED;",
    ),
    "curand": (
        "#include <curand_kernel.h>\ncurandStatePhilox4_32_10_t s; curand_init(1, 2, 3, &s); f = curand_uniform4(&s); "
        "curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10); unsigned u = curand(&s);",
        "#include <murand_kernel.h>\nmurandStatePhilox4_32_10_t s; murand_init(1, 2, 3, &s); f = murand_uniform4(&s); "
        "murandGenerator_t g; murandCreateGenerator(&g, MURAND_RNG_PSEUDO_PHILOX4_32_10); unsigned u = murand(&s);",
    ),
    "cufft": (
        "#include <cufft.h>\ncufftHandle p; cufftPlan1d(&p, 64, CUFFT_C2C, 1); cufftExecC2C(p, i, o, CUFFT_FORWARD);",
        "#include <mufft.h>\nmufftHandle p; mufftPlan1d(&p, 64, MUFFT_C2C, 1); mufftExecC2C(p, i, o, MUFFT_FORWARD);",
    ),
    "cusolver": (
        "#include <cusolverDn.h>\ncusolverDnHandle_t h; cusolverDnSgetrf_bufferSize(h, 2, 2, a, 2, &n); "
        "cusolverDnXsyevjSetTolerance(p, t); auto m = CUSOLVER_EIG_MODE_VECTOR;",
        "#include <musolverDn.h>\nmusolverDnHandle_t h; musolverDnSgetrf_bufferSize(h, 2, 2, a, 2, &n); "
        "musolverDnXsyevjSetTolerance(p, t); auto m = MUSOLVER_EIG_MODE_VECTOR;",
    ),
    "cusparse": (
        "#include <cusparse.h>\ncusparseSpMatDescr_t a; cusparseSpMM(h, CUSPARSE_OPERATION_NON_TRANSPOSE);",
        "#include <musparse.h>\nmusparseSpMatDescr_t a; musparseSpMM(h, MUSPARSE_OPERATION_NON_TRANSPOSE);",
    ),
    "nccl": (
        "#include <nccl.h>\nncclComm_t c; ncclAllReduce(s, r, n, ncclFloat, ncclSum, c, t); f(NCCL_UNIQUE_ID_BYTES);",
        "#include <mccl.h>\nmcclComm_t c; mcclAllReduce(s, r, n, mcclFloat, mcclSum, c, t); f(MCCL_UNIQUE_ID_BYTES);",
    ),
    "thrust and cub": (
        "#include <cub/cub.cuh>\n#include <cub/device/device_scan.cuh>\n#include <thrust/sort.h>\n"
        "#include <thrust/system/cuda/execution_policy.h>\nthrust::sort(thrust::cuda::par.on(s), a, b); "
        "cub::DeviceScan::InclusiveSum(t, n, a, b, k);",
        "#include <cub/cub.cuh>\n#include <cub/device/device_scan.cuh>\n#include <thrust/sort.h>\n"
        "#include <thrust/system/musa/execution_policy.h>\nthrust::sort(thrust::musa::par.on(s), a, b); "
        "cub::DeviceScan::InclusiveSum(t, n, a, b, k);",
    ),
    "kernels": (
        "#ifdef __CUDACC__\n__nv_bfloat16 b; __nv_fp8_e4m3 f; cuFloatComplex c = make_cuFloatComplex(1, 2);\n#endif\n",
        "#ifdef __MUSACC__\n__mt_bfloat16 b; __mt_fp8_e4m3 f; muFloatComplex c = make_muFloatComplex(1, 2);\n#endif\n",
    ),
    "C++ library": (
        "#include <cuda/std/limits>\nauto m = cuda::std::numeric_limits<float>::max();",
        "#include <musa/std/limits>\nauto m = musa::std::numeric_limits<float>::max();",
    ),
    "registrations": (
        "TORCH_LIBRARY_IMPL(mine, CUDA, m) {}\nTORCH_LIBRARY_IMPL(mine, AutogradCUDA, m) {}\n"
        'TORCH_LIBRARY_IMPL(mine, CPU, m) { m.impl("cuda_kernel", f); }',
        "TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) {}\nTORCH_LIBRARY_IMPL(mine, AutogradPrivateUse1, m) {}\n"
        'TORCH_LIBRARY_IMPL(mine, CPU, m) { m.impl("cuda_kernel", f); }',
    ),
    "PyTorch": (
        "void f(cudaStream_t s) { C10_CUDA_CHECK(cudaMemsetAsync(p, 0, n, s)); C10_CUDA_KERNEL_LAUNCH_CHECK(); }",
        "void f(musaStream_t s) { C10_MUSA_CHECK(musaMemsetAsync(p, 0, n, s)); C10_MUSA_KERNEL_LAUNCH_CHECK(); }",
    ),
    "namespaces": (
        "using c10::cuda::CUDAGuard;\nnamespace at::cuda { auto s = at::cuda::getCurrentCUDAStream(); }",
        "using c10::musa::MUSAGuard;\nnamespace at::musa { auto s = at::musa::getCurrentMUSAStream(); }",
    ),
    "namespaces with nothing behind them": (
        "using namespace at::cuda;\nusing namespace cuda;\nnamespace c = ::c10::cuda;\n"
        "#define NS at :: cuda\nbool cuda = 1;",
        "using namespace at::musa;\nusing namespace musa;\nnamespace c = ::c10::musa;\n"
        "#define NS at :: musa\nbool cuda = 1;",
    ),
    "headers that are asked for or named by a macro": (
        '#if __has_include(<cuda_bf16.h>) && __has_include("x.cuh")\n#endif\n'
        "#define FP16 <cuda_fp16.h>\n#include FP16\n"
        '#define MINE "mine.cuh" // "a.cuh"\n#include MINE\n#define TEXT "other.cuh"\n'
        "#include /* BLAS */ <cublas_v2.h>\n"
        "/* FFT */ # /**/ include <cufft.h>\n#include \\\n  <cuda.h>\n#import <curand.h>\n",
        '#if __has_include(<musa_bf16.h>) && __has_include("x.muh")\n#endif\n'
        "#define FP16 <musa_fp16.h>\n#include FP16\n"
        '#define MINE "mine.muh" // "a.cuh"\n#include MINE\n#define TEXT "other.cuh"\n#include /* BLAS */ <mublas.h>\n'
        "/* FFT */ # /**/ include <mufft.h>\n#include \\\n  <musa.h>\n#import <murand.h>\n",
    ),
    "a first line behind a byte order mark": ("\ufeff#include <cuda.h>\n", "\ufeff#include <musa.h>\n"),
    "dispatch keys": (
        "auto k = c10::DispatchKey::CUDA; auto d = at::DeviceType::CUDA; bool b = t.is_cuda() && x == kCUDA;",
        "auto k = c10::DispatchKey::PrivateUse1; auto d = at::DeviceType::PrivateUse1; "
        "bool b = t.is_privateuseone() && x == kPrivateUse1;",
    ),
    "includes": (
        '#include <ATen/native/cuda/Loops.cuh>\n#include <ATen/cuda/CUDAContext.h>\n#include "mine/Mine.cuh"\n'
        "#include <cuda_fp16.h>\n#include <ATen/native/Lerp.h>\n",
        '#include <ATen/native/musa/Loops.muh>\n#include <ATen/musa/MUSAContext.h>\n#include "mine/Mine.muh"\n'
        "#include <musa_fp16.h>\n#include <ATen/native/Lerp.h>\n",
    ),
    "stubs": (
        "REGISTER_DISPATCH(sin_stub, &sin_kernel)\nREGISTER_DISPATCH(cos_stub, &cos_kernel);\n",
        "REGISTER_PRIVATEUSE1_DISPATCH(sin_stub, &sin_kernel)\nREGISTER_PRIVATEUSE1_DISPATCH(cos_stub, &cos_kernel);\n",
    ),
    "macro bodies": (
        '#define LAUNCH(k) \\\n  k<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>("at::cuda")\n',
        '#define LAUNCH(k) \\\n  k<<<1, 1, 0, at::musa::getCurrentMUSAStream()>>>("at::cuda")\n',
    ),
    "conditions": (
        "#ifdef __CUDA_ARCH__\n#elif !defined( __CUDA_ARCH__ ) || A\n#endif\n#if A && !__CUDA_ARCH__\n#endif\n",
        "#ifdef __MUSA_ARCH__\n#elif !defined( __MUSA_ARCH__ ) || A\n#endif\n#if A && !__MUSA_ARCH__\n#endif\n",
    ),
    "macros the grammar does not know": (
        "void f() { gpu_kernel(iter, [=] GPU_LAMBDA(float a) -> float { return a; }); }"
        "\nC10_LAUNCH_BOUNDS_1(256) __global__ void k(cudaEvent_t e) {}",
        "void f() { gpu_kernel(iter, [=] GPU_LAMBDA(float a) -> float { return a; }); }"
        "\nC10_LAUNCH_BOUNDS_1(256) __global__ void k(musaEvent_t e) {}",
    ),
}


@pytest.mark.parametrize("source, expected", GOLDENS.values(), ids=GOLDENS)
def test_golden(source: str, expected: str) -> None:
    assert ported(source) == expected


@pytest.mark.parametrize("source, expected", GOLDENS.values(), ids=GOLDENS)
def test_a_port_of_a_port_is_itself(source: str, expected: str) -> None:
    assert ported(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        'auto s = "cudaMalloc in at::cuda";',
        'auto s = R"(cudaMalloc " at::cuda)";',
        "// cudaMalloc, C10_CUDA_CHECK, at::cuda::x\nint a;",
        "/* cudaMalloc\n * at::cuda */ int a;",
        "int my_cuda = 3; int lerp_cuda = my_cuda;",
        "auto c = 'c'; auto u = u8\"kCUDA\";",
    ],
)
def test_strings_comments_and_other_names_are_untouched(text: str) -> None:
    assert ported(text) == text


def test_every_name_that_cannot_be_ported_is_reported_with_its_place() -> None:
    source = (
        "#if CUDA_VERSION >= 11000\n"
        "#endif\n"
        "void f() {\n"
        '  asm("mov.u32 %0, 1;" : "=r"(x));\n'
        "  cudaFancyNewCall(x);\n"
        "  auto h = at::cuda::getFancyCUDAHandle();\n"
        "}\n"
    )
    assert problems(source) == [
        "k.cu:1:5: error: 'CUDA_VERSION' cannot be ported",
        "k.cu:4:3: error: 'asm' cannot be ported",
        "k.cu:5:3: error: 'cudaFancyNewCall' has no known MUSA counterpart",
        "k.cu:6:22: error: 'getFancyCUDAHandle' has no known MUSA counterpart",
    ]


def test_places_inside_macro_bodies_are_those_of_the_file() -> None:
    assert problems("#define A 1\n#define F(x) \\\n  g(x); \\\n  cudaNoSuchCall(x)\n") == [
        "k.cu:4:3: error: 'cudaNoSuchCall' has no known MUSA counterpart"
    ]


@pytest.mark.parametrize(
    "source, message",
    [
        ("void f() {\n  g(1;\n}\n", "k.cu:3:1: error: '}' closes nothing"),
        ("void f() {\n  g(1);\n", "k.cu:1:10: error: '{' is never closed"),
    ],
)
def test_a_broken_file_is_reported(source: str, message: str) -> None:
    assert problems(source) == [message]


@given(st.text(alphabet=st.sampled_from("abc(){};<>,:\"'/*\\#\n cudaMlo0"), max_size=80))
def test_any_text_is_ported_or_reported_and_keeps_its_lines(source: str) -> None:
    result = port_text(source, MAPPING)
    assert result.text.count("\n") == source.count("\n")


def test_a_callers_own_rules_win_and_the_defaults_stay() -> None:
    own = replace(MAPPING, identifiers={**MAPPING.identifiers, "cudaMalloc": "myMalloc"})
    assert port_text("cudaMalloc(&p, 1);", own).text == "myMalloc(&p, 1);"
    assert ported("cudaMalloc(&p, 1);") == "musaMalloc(&p, 1);"
    with pytest.raises(TypeError):
        MAPPING.identifiers["cudaMalloc"] = "x"  # type: ignore[index]


def test_a_tree_keeps_its_shape_and_writes_only_what_changed(tmp_path: Path) -> None:
    source, out = tmp_path / "src", tmp_path / "src" / "out"
    (source / "ATen/native/cuda").mkdir(parents=True)
    (source / "skip").mkdir()
    (source / "ATen/native/cuda/A.cuh").write_text("cudaStream_t s;\n")
    (source / "b.cu").write_text('#include "ATen/native/cuda/A.cuh"\n')
    (source / "hand.mu").write_text("cudaStream_t mine;\n")
    (source / "skip/c.cu").write_text("cudaStream_t s;\n")
    (source / "loop").symlink_to(source)

    first = port_tree(source, out, ignore=[source / "skip"])
    assert [str(problem).splitlines()[0] for problem in first.problems] == [
        f"{source}/loop: error: a link in a circle: it leads to a folder above itself"
    ]
    assert sorted(p.relative_to(out).as_posix() for p in first.written) == ["ATen/native/musa/A.muh", "b.mu"]
    assert (out / "ATen/native/musa/A.muh").read_text() == "musaStream_t s;\n"
    assert (source / "b.cu").read_text() == '#include "ATen/native/cuda/A.cuh"\n'

    assert port_tree(source, out, ignore=[source / "skip"]).written == ()
    (source / "b.cu").write_text("int x;\n")
    assert [p.name for p in port_tree(source, out, ignore=[source / "skip"]).written] == ["b.mu"]


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"int a;\n// caf\xe9\n")
    (tmp_path / "b.cu").write_text("int b;\n")
    report = port_tree(tmp_path, tmp_path / "out")
    assert [str(p).splitlines()[0] for p in report.problems] == [f"{tmp_path}/a.cu:2:7: error: not UTF-8 text"]
    assert [p.name for p in report.written] == ["b.mu"]


def test_a_file_with_problems_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("cudaNoSuchCall();\n")
    report = port_file(tmp_path / "a.cu", tmp_path / "a.mu")
    assert report.problems and not report.written and not (tmp_path / "a.mu").exists()


def test_write_if_changed_leaves_no_temporary_file_behind(tmp_path: Path) -> None:
    target = tmp_path / "x.mu"
    assert write_if_changed(target, "a") and not write_if_changed(target, "a")
    assert [p.name for p in tmp_path.iterdir()] == ["x.mu"]


@pytest.mark.parametrize(
    "table, message",
    [
        ("a\n", "expected two columns"),
        ("a\tb\na\tc\n", "'a' is mapped twice"),
        ("@\tcu\tmu\nculler\nother\n", "no '@' line says how 'other' begins"),
    ],
)
def test_a_faulty_table_is_an_error_with_its_place(tmp_path: Path, table: str, message: str) -> None:
    path = tmp_path / "identifiers.tsv"
    path.write_text(table)
    with pytest.raises(OpgenError, match=message) as info:
        read_table(path)
    assert info.value.location is not None and info.value.location.line == table.count("\n")


def test_the_projects_own_kernels_port_without_a_rest(tmp_path: Path) -> None:
    report = port_tree(ROOT / "kernels/ported", tmp_path)
    assert report.files and [str(p) for p in report.problems] == []
    for path in report.written:
        code = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', "", path.read_text())
        assert not re.search(r"cuda|CUDA(?!_KERNEL_ASSERT)", code), path


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("cudaStream_t s;\n")
    command = [sys.executable, "-m", "opgen.port"]
    done = subprocess.run([*command, tmp_path / "a.cu", "--out", tmp_path / "b.mu"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0 and (tmp_path / "b.mu").read_text() == "musaStream_t s;\n"
    (tmp_path / "a.cu").write_text("cudaNope();\n")
    done = subprocess.run([*command, tmp_path, "--out", tmp_path / "out"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{tmp_path}/a.cu:1:1: error: 'cudaNope' has no known MUSA counterpart")


def test_a_string_that_names_a_device_is_told_where_strings_stay():
    source = 'auto a = x.to("cuda"), b = y.to("cuda:1");\nTORCH_CHECK(x.is_cpu(), "not on cuda:", "cuda is on");\n'
    assert problems(source) == [
        """k.cu:1:15: warning: "cuda" names CUDA's device and stays""",
        """k.cu:1:33: warning: "cuda:1" names CUDA's device and stays""",
    ]
    exchanged = port_text(source, MAPPING, options=Options(strings=True))
    assert exchanged.problems == () and '"musa:1"' in exchanged.text


def test_a_rule_decides_about_a_string_that_it_quotes():
    options = Options(rules=Rules({'x.to("cuda")': "to_musa(x)"}))
    result = port_text('auto a = x.to("cuda");', MAPPING, options=options)
    assert (result.text, result.problems) == ("auto a = to_musa(x);", ())
