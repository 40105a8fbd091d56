"""The port of PyTorch's own device headers, on made-up ones: which are ported, which are left out, and as what."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.port.cli import command
from opgen.port.mapping import load_mapping
from opgen.port.rewrite import port_text
from opgen.port.wheel import HeaderEdit, read_decisions

ROOT = Path(__file__).resolve().parents[2]

LOOPS = """#pragma once
#include <ATen/cuda/CUDAContext.h>
#include <ATen/native/cuda/MemoryAccess.cuh>
#include <c10/cuda/CUDAGuard.h>

namespace at::native {
template <typename func_t>
__global__ void apply(int n, func_t f, float* out) {
  CUDA_KERNEL_ASSERT(n > 0);
#if !defined(CUDA_VERSION) || CUDA_VERSION < 12080
  out[threadIdx.x] = f(out[threadIdx.x]);
#endif
}

template <typename func_t>
void each(at::Tensor out, const func_t& f) {
  TORCH_CHECK(out.is_cuda());
  const c10::cuda::CUDAGuard guard(out.device());
  apply<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(32, f, out.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
}  // namespace at::native
"""
ACCESS = """#pragma once
union Vec { float4 v; };
template <int Alignment>
__device__ Vec read(const float* addr) {
  Vec vec;
  asm("ld.global.v4.u32 {%0}, [%1];"
      : "=r"(vec.v.x)
      : "l"(addr));
  return vec;
}
"""


@pytest.fixture
def torch_dir(tmp_path: Path) -> Path:
    include = tmp_path / "torch/include"
    texts = {
        "ATen/native/cuda/Loops.cuh": LOOPS,
        "ATen/native/cuda/MemoryAccess.cuh": ACCESS,
        "ATen/native/cuda/Sort.h": "void sort_in_libtorch_cuda();\n",
        "ATen/cuda/CUDAContext.h": "// libtorch_cuda's\n",
        "ATen/cuda/tunable/Gemm.h": "// cuBLAS\n",
        "c10/cuda/CUDAMathCompat.h": "namespace c10::cuda::compat {}\n",
        "ATen/native/SharedReduceOps.h": "#ifdef __CUDACC__\n#include <ATen/cuda/DeviceUtils.cuh>\n#endif\n",
        "ATen/core/Tensor.h": "bool is_cuda();\n",
    }
    for name, text in texts.items():
        path = include / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "torch"


def port(torch_dir: Path, out: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, [str(torch_dir), "--torch-headers", "--out", str(out), *arguments])
    return done.exit_code, done.output


def files(out: Path) -> set[str]:
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file() and path.name[0] != "."}


def test_headers_of_the_device_are_ported_to_where_ported_includes_look(torch_dir, tmp_path):
    code, text = port(torch_dir, tmp_path / "out")
    assert code == 0, text
    assert files(tmp_path / "out") == {
        "ATen/native/musa/Loops.muh",
        "ATen/native/musa/MemoryAccess.muh",
        "ATen/musa/MUSAContext.h",
        "c10/musa/MUSAMathCompat.h",
        "ATen/native/SharedReduceOps.h",
    }
    wanted = LOOPS.replace("ATen/cuda/CUDAContext.h", "ATen/musa/MUSAContext.h")
    wanted = wanted.replace("ATen/native/cuda/MemoryAccess.cuh", "ATen/native/musa/MemoryAccess.muh")
    wanted = wanted.replace("c10/cuda/CUDAGuard.h", "c10/musa/MUSAGuard.h").replace("is_cuda", "is_privateuseone")
    wanted = wanted.replace("c10::cuda::CUDAGuard", "c10::musa::MUSAGuard")
    wanted = wanted.replace("at::cuda::getCurrentCUDAStream", "at::musa::getCurrentMUSAStream")
    wanted = wanted.replace("C10_CUDA_KERNEL_LAUNCH_CHECK", "C10_MUSA_KERNEL_LAUNCH_CHECK")
    wanted = wanted.replace("!defined(CUDA_VERSION) || CUDA_VERSION < 12080", "1")
    # c10 calls the assertion so on every device.
    assert (tmp_path / "out/ATen/native/musa/Loops.muh").read_text() == wanted


def test_decisions_about_single_places_keep_the_lines(torch_dir, tmp_path):
    port(torch_dir, tmp_path / "out")
    text = (tmp_path / "out/ATen/native/musa/MemoryAccess.muh").read_text()
    assert "asm" not in text
    assert text.count("\n") == ACCESS.count("\n")
    assert text.splitlines()[5].strip() == "vec = *reinterpret_cast<const Vec<Alignment>*>(addr);"


def test_a_header_of_ones_own_stands_in_for_the_ported_one(torch_dir, tmp_path):
    own = tmp_path / "own/ATen/musa/MUSAContext.h"
    own.parent.mkdir(parents=True)
    own.write_text("// ours\n")
    port(torch_dir, tmp_path / "out")
    assert "ATen/musa/MUSAContext.h" in files(tmp_path / "out")
    # The port of an earlier run would be found first: it goes.
    port(torch_dir, tmp_path / "out", "--own", str(tmp_path / "own"))
    assert "ATen/musa/MUSAContext.h" not in files(tmp_path / "out")


def test_the_report_says_of_every_header_that_is_not_ported_why(torch_dir, tmp_path):
    own = tmp_path / "own/ATen/musa/MUSAContext.h"
    own.parent.mkdir(parents=True)
    own.write_text("// ours\n")
    _, text = port(torch_dir, tmp_path / "out", "--own", str(tmp_path / "own"), "--format", "json")
    reasons = {row["file"]: row["why"] for row in json.loads(text)["left_out"]}
    assert set(reasons) == {"ATen/cuda/CUDAContext.h", "ATen/cuda/tunable/Gemm.h", "ATen/native/cuda/Sort.h"}
    assert "stands in" in reasons["ATen/cuda/CUDAContext.h"]
    assert "libtorch_cuda alone" in reasons["ATen/native/cuda/Sort.h"]
    _, text = port(torch_dir, tmp_path / "out", "--own", str(tmp_path / "own"))
    assert "3 headers left out on purpose; --report FILE says why" in text


def test_what_no_decision_covers_is_reported_and_the_rest_ported(torch_dir, tmp_path):
    path = torch_dir / "include/ATen/native/cuda/Loops.cuh"
    path.write_text(f"{LOOPS}#if CUDA_VERSION >= 99000\n#endif\n")
    code, text = port(torch_dir, tmp_path / "out")
    assert code == 1 and "Loops.cuh:23:5: error: 'CUDA_VERSION' cannot be ported" in text
    assert "ATen/native/musa/Loops.muh" not in files(tmp_path / "out")
    assert "ATen/native/musa/MemoryAccess.muh" in files(tmp_path / "out")


def test_a_second_run_writes_nothing_and_a_new_wheel_what_it_changed(torch_dir, tmp_path):
    def written() -> int:
        return json.loads(port(torch_dir, tmp_path / "out", "--format", "json")[1])["counts"]["written"]

    assert written() == 5
    assert written() == 0
    (torch_dir / "include/c10/cuda/CUDAMathCompat.h").write_text("// of another version\n")
    assert written() == 1
    (torch_dir / "include/c10/cuda/CUDAMathCompat.h").unlink()
    assert written() == 0 and "c10/musa/MUSAMathCompat.h" not in files(tmp_path / "out")


def test_a_package_without_device_headers_is_an_error_in_words(tmp_path):
    (tmp_path / "torch/include/ATen").mkdir(parents=True)
    code, text = port(tmp_path / "torch", tmp_path / "out")
    assert code == 1 and "no device headers" in text and "Traceback" not in text


def test_nothing_to_port_is_an_error_in_words(tmp_path):
    done = CliRunner().invoke(command, ["--out", str(tmp_path)])
    assert done.exit_code == 1 and "name a file or a folder, or --torch-headers" in done.output


GOLDENS = {
    "checks and launches": (
        "ATen/native/cuda/Reduce.cuh",
        "auto stream = at::cuda::getCurrentCUDAStream();\nAT_CUDA_CHECK(cudaMemsetAsync(p, 0, n, stream));\n",
        "auto stream = at::musa::getCurrentMUSAStream();\nAT_MUSA_CHECK(musaMemsetAsync(p, 0, n, stream));\n",
    ),
    "memory": (
        "ATen/native/cuda/Reduce.cuh",
        "auto& a = *c10::cuda::CUDACachingAllocator::get();\n",
        "auto& a = *c10::musa::MUSACachingAllocator::get();\n",
    ),
    "what is compiled at run time": (
        "ATen/native/cuda/Reduce.cuh",
        "int a;\ninline void launch_jitted_reduce_kernel(int x) {\n  if (x) {\n  }\n}\nint b;\n",
        "int a;\n\n\n\n\nint b;\n",
    ),
    "kernel loops": (
        "ATen/cuda/detail/KernelUtils.h",
        "#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)\nconstexpr int CUDA_NUM_THREADS = 1024;\n",
        "#define MUSA_KERNEL_LOOP(i, n) MUSA_KERNEL_LOOP_TYPE(i, n, int)\nconstexpr int MUSA_NUM_THREADS = 1024;\n",
    ),
    "generators": (
        "ATen/native/cuda/DistributionTemplates.h",
        "at::PhiloxCudaState s = gen->philox_cuda_state(4);\nauto [a, b] = at::cuda::philox::unpack(s);\n"
        "curandStatePhilox4_32_10_t state;\ncurand_init(a, i, b, &state);\n",
        "at::PhiloxMusaState s = gen->philox_musa_state(4);\nauto [a, b] = at::musa::philox::unpack(s);\n"
        "murandStatePhilox4_32_10_t state;\nmurand_init(a, i, b, &state);\n",
    ),
    "narrow atomics": (
        "ATen/cuda/Atomic.cuh",
        "#if defined(USE_ROCM) || ((defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 700)))\n#endif\n",
        "#if !defined(MUSA_NATIVE_HALF_ATOMICS)\n#endif\n",
    ),
    "architectures": (
        "ATen/native/cuda/Other.cuh",
        "#if !(defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800))\n#include <cuda_bf16.h>\n#endif\n",
        "#if !(defined(__MUSA_ARCH__) && (__MUSA_ARCH__ < 220))\n#include <musa_bf16.h>\n#endif\n",
    ),
    "the compiler's own": (
        "ATen/native/SharedReduceOps.h",
        "#if defined(__CUDACC__) || defined(__HIPCC__)\n#include <ATen/native/cuda/DeviceSqrt.cuh>\n#endif\n",
        "#if defined(__MUSACC__) || defined(__HIPCC__)\n#include <ATen/native/musa/DeviceSqrt.muh>\n#endif\n",
    ),
    "what c10 calls alike on every device": (
        "ATen/native/cuda/Any.cuh",
        "TORCH_CUDA_CU_API void f();\n__device__ void g() { CUDA_KERNEL_ASSERT(true); }\n",
        "TORCH_CUDA_CU_API void f();\n__device__ void g() { CUDA_KERNEL_ASSERT(true); }\n",
    ),
}


@pytest.mark.parametrize("header, text, wanted", GOLDENS.values(), ids=GOLDENS)
def test_golden_of_a_family(header, text, wanted):
    ported = port_text(read_decisions().prepare(header, text), load_mapping(), device=header.endswith(".cuh"))
    assert ported.text == wanted and not ported.problems


def test_an_edit_that_spans_lines_keeps_their_number():
    edit = HeaderEdit(("*",), re.compile(r"a.*?d", re.DOTALL), "x", "")
    assert edit.apply("1\na\nb\nd\n5\n") == "1\nx\n\n\n5\n"


def test_every_decision_has_a_reason():
    decisions = read_decisions()
    assert all(edit.why for edit in decisions.edits) and all(why for _, why in decisions.left_out)


def test_no_header_is_both_left_out_and_written_by_hand():
    mapping, decisions = load_mapping(), read_decisions()
    own = {
        path.relative_to(root).as_posix()
        for root in (ROOT / "torch_musa/csrc/porting", ROOT / "torch_musa/csrc/porting_host")
        for path in root.rglob("*.*h")
    }
    assert not own & {mapping.include(header) for header, _ in decisions.left_out}
