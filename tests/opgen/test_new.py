"""`opgen new`: what it decides, what it writes, what it refuses, and that it writes everything or nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from expecttest import assert_expected_inline
from generator_cases import upstream

from opgen.cli import main, opgen
from opgen.diagnostics import Diagnostics
from opgen.gen import Sources, analyse, generate
from opgen.new import write
from opgen.project import Project
from opgen.upstream import find_torch

ROOT = Path(__file__).resolve().parents[2]
LIST = """\
# ---- triangles
- func: tril
- func: tril_
- func: tril.out
  dispatch:
    PrivateUse1: MusaTril  # no in-place kernel

# ---- the rest
- func: nonzero
  dispatch:
    PrivateUse1: Nonzero
- func: sub.Tensor
- func: sub.out
  dispatch:
    PrivateUse1: MusaSub
- func: hypot
  torch: ">=9"
  dispatch:
    PrivateUse1: cpu_fallback
- func: addmm
  dispatch:
    SparsePrivateUse1: AddmmSparse
"""
KERNELS = """\
namespace at::musa {
TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
TORCH_IMPL_FUNC(MusaSub)(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& result) {}
Tensor Nonzero(const Tensor& self) {}
Tensor AddmmSparse(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {}
}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("yaml", "kernels/mudnn", "tests/ops"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "yaml" / "musa_functions.yaml").write_text(LIST)
    (tmp_path / "kernels" / "mudnn" / "Kernels.cpp").write_text(KERNELS)
    shutil.copy(ROOT / ".clang-format", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("opgen.upstream.load_upstream", lambda install: upstream())  # read once, not in every test
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(opgen, ["new", *arguments], catch_exceptions=False)


def tree(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def refused(project: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of a run that must change nothing."""
    before = tree(project)
    with pytest.raises(SystemExit) as stop:
        main(["new", *arguments])
    assert stop.value.code == 1
    assert tree(project) == before
    return capsys.readouterr().err


def created(project: Path, *arguments: str) -> dict[str, str]:
    """The files that a run has added, and the entries that it has put into the list under `yaml`."""
    before = tree(project)
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    after = tree(project)
    new = {name: data.decode() for name, data in after.items() if name not in before}
    old_lines = before["yaml/musa_functions.yaml"].decode().splitlines()
    new_lines = after["yaml/musa_functions.yaml"].decode().splitlines()
    for line in old_lines:
        new_lines.remove(line)
    assert all(after[name] == before[name] for name in before if name != "yaml/musa_functions.yaml")
    diagnostics = Diagnostics()
    sources = Sources(project / "yaml" / "musa_functions.yaml", project / "kernels", find_torch())
    analyse(sources, diagnostics)
    assert not diagnostics.errors, [str(item) for item in diagnostics]
    return {**new, "yaml": "\n".join(line for line in new_lines if line)}


# ---- what is written


def test_a_structured_operator_is_legacy_where_its_stubs_are_known(project: Path) -> None:
    found = created(project, "hash_tensor")
    assert found["yaml"] == "- func: hash_tensor\n- func: hash_tensor.out"
    assert_expected_inline(
        found["kernels/ported/HashTensor.cu"],
        """\
// hash_tensor, hash_tensor.out, hung on PyTorch's stubs.
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include "kernels/ported/OpmathDispatch.cuh"
#include "torch_musa/csrc/aten/Skeleton.h"

namespace at::native {
namespace {

void xor_sum_kernel(TensorIterator& iter) {
  // Delete this line when what follows it is written.
  at::musa::NotWritten("xor_sum_stub", "hash_tensor.out", "kernels/ported/HashTensor.cu");

  // Checks, then the launch: gpu_kernel for elementwise work, for_each_index (EachElement.cuh) or a
  // __global__ function of your own for the rest.
}

}  // namespace

REGISTER_DISPATCH(xor_sum_stub, &xor_sum_kernel)

}  // namespace at::native
""",
    )
    assert_expected_inline(
        found["tests/ops/test_op_hash_tensor.py"],
        """\
\"\"\"`hash_tensor` and its group against the CPU, a hundred cases each.\"\"\"

from __future__ import annotations

import pytest

from opgen.testing import check_overload

OVERLOADS = [
    "hash_tensor",
    "hash_tensor.out",
]


@pytest.mark.parametrize("op", OVERLOADS)
def test_hash_tensor_agrees_with_cpu(op: str, device: str) -> None:
    check_overload(op, device=device, count=100)
""",
    )


def test_legacy_meta_on_mudnn(project: Path) -> None:
    found = created(project, "lerp.Scalar", "--family", "mudnn")
    assert_expected_inline(
        found["yaml"],
        """\
- func: lerp.Scalar
- func: lerp_.Scalar
- func: lerp.Scalar_out
  dispatch:
    PrivateUse1: MusaLerpScalar""",
    )
    assert_expected_inline(
        found["kernels/mudnn/Lerp.cpp"],
        """\
// lerp.Scalar, lerp_.Scalar, lerp.Scalar_out.
#include <torch_musa/ops/lerp_native.h>
#include "kernels/mudnn/Operands.h"
#include "torch_musa/csrc/aten/Skeleton.h"

namespace at::musa {

TORCH_IMPL_FUNC(MusaLerpScalar)(const Tensor& self, const Tensor& end, const Scalar& weight,
                                const Tensor& out) {
  // Delete this line when what follows it is written.
  NotWritten("MusaLerpScalar", "lerp.Scalar_out", "kernels/mudnn/Lerp.cpp");

  // The meta function has checked the operands and built the iterator that this class is; the
  // device is guarded. Where muDNN has an elementwise mode, one line replaces all that follows:
  //   RunUnary(*this, UnaryMode::..., {"lerp.Scalar_out"});
  IterOperands operands(*this, common_dtype(), common_dtype());
  [[maybe_unused]] muTensor mu_self = operands.in(1);
  [[maybe_unused]] muTensor mu_end = operands.in(2);
  [[maybe_unused]] muTensor mu_out = operands.out();
  // Call:
  //   ::musa::dnn::... op;
  //   CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_self, mu_end), "lerp.Scalar_out");
  operands.finish();
}

}  // namespace at::musa
""",
    )


def test_customized(project: Path) -> None:
    found = created(project, "triu", "--kind", "customized", "--name", "MusaTriangleUpper")
    assert_expected_inline(
        found["yaml"],
        """\
- func: triu
- func: triu_
- func: triu.out
  structured_inherits: MyMetaBase
  dispatch:
    PrivateUse1: MusaTriangleUpper""",
    )
    assert_expected_inline(
        found["kernels/mudnn/TriangleUpper.cpp"],
        """\
// triu, triu_, triu.out.
#include <torch_musa/ops/triu_native.h>
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/aten/Skeleton.h"

namespace at::musa {

TORCH_META_FUNC(triu)(const Tensor& self, int64_t diagonal) {
  // Delete this line when what follows it is written.
  NotWritten("triu", "triu.out", "kernels/mudnn/TriangleUpper.cpp");

  // Checks, then one declaration for each output: its sizes, strides (none: as the kernel likes)
  // and options.
  //   set_output_raw_strided(0, sizes, {}, options);
}

TORCH_IMPL_FUNC(MusaTriangleUpper)(const Tensor& self, int64_t diagonal, const Tensor& out) {
  // Delete this line when what follows it is written.
  NotWritten("MusaTriangleUpper", "triu.out", "kernels/mudnn/TriangleUpper.cpp");

  // The meta function has checked, the outputs have their sizes, the device is guarded.
  if (out.numel() == 0) return;
  // Layout
  const Tensor self_dense = self.contiguous();
  // Operands
  [[maybe_unused]] muTensor mu_self = CreateMUTensor(self_dense);
  [[maybe_unused]] muTensor mu_out = CreateMUTensor(out);
  // Call:
  //   ::musa::dnn::... op;
  //   CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, ...), "triu.out");
}

}  // namespace at::musa
""",
    )


def test_a_plain_group_gets_functions_that_share_one_computation(project: Path) -> None:
    found = created(project, "im2col", "--family", "ported")
    assert_expected_inline(
        found["yaml"],
        """\
- func: im2col
  dispatch:
    PrivateUse1: Im2col
- func: im2col.out
  dispatch:
    PrivateUse1: Im2colOut""",
    )
    assert_expected_inline(
        found["kernels/ported/Im2col.cu"],
        """\
// im2col, im2col.out.
#include <torch_musa/ops/im2col_native.h>
#include <ATen/DeviceGuard.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include "kernels/ported/EachElement.cuh"
#include "torch_musa/csrc/aten/Skeleton.h"

namespace at::musa {

Tensor& Im2colOut(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation,
                  IntArrayRef padding, IntArrayRef stride, Tensor& out) {
  // Delete this line when what follows it is written.
  NotWritten("Im2col, Im2colOut", "im2col.out", "kernels/ported/Im2col.cu");

  // Checks: what the CPU refuses is refused here, with the same type of exception.
  const c10::cuda::OptionalCUDAGuard guard(device_of(self));
  // The output's sizes: native::resize_output(out, sizes), of <ATen/native/Resize.h>.
  const Tensor self_dense = self.contiguous();
  native::for_each_index(out.device(), out.numel(), [=] GPU_LAMBDA(int64_t i) {
    // Element i of the result.
  });
  return out;
}

Tensor Im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  Tensor out = at::empty({0}, self.options());
  return Im2colOut(self, kernel_size, dilation, padding, stride, out);
}

}  // namespace at::musa
""",
    )


def test_a_structured_group_turned_unstructured(project: Path) -> None:
    found = created(project, "triu.out", "--kind", "unstructured")
    assert_expected_inline(
        found["yaml"],
        """\
- func: triu
  dispatch:
    PrivateUse1: Triu
- func: triu_
  dispatch:
    PrivateUse1: Triu_
- func: triu.out
  structured: false
  dispatch:
    PrivateUse1: TriuOut""",
    )
    assert "Tensor& Triu_(Tensor& self, int64_t diagonal) { return TriuOut(self, diagonal, self); }" in " ".join(
        found["kernels/mudnn/Triu.cpp"].split()
    )


def test_an_operator_of_our_own_gets_a_meta_function_and_a_test_to_fill(project: Path) -> None:
    found = created(project, "musa::rope(Tensor q, Tensor k, *, float base=1e4) -> (Tensor, Tensor)")
    assert_expected_inline(
        found["yaml"],
        """\
- func: musa::rope(Tensor q, Tensor k, *, float base=1e4) -> (Tensor, Tensor)
  dispatch:
    PrivateUse1: Rope
    Meta: RopeMeta""",
    )
    assert_expected_inline(
        found["kernels/ported/Rope.cu"],
        """\
// musa::rope, an operator of our own.
#include <torch_musa/ops/rope_native.h>
#include <ATen/DeviceGuard.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include "kernels/ported/EachElement.cuh"
#include "torch_musa/csrc/aten/Skeleton.h"

namespace at::musa {

std::tuple<Tensor, Tensor> Rope(const Tensor& q, const Tensor& k, double base) {
  // Delete this line when what follows it is written.
  NotWritten("Rope", "musa::rope", "kernels/ported/Rope.cu");

  // Checks: what the CPU refuses is refused here, with the same type of exception.
  const c10::cuda::OptionalCUDAGuard guard(device_of(q));
  Tensor out0 = at::empty({0}, q.options());
  Tensor out1 = at::empty({0}, q.options());
  const Tensor q_dense = q.contiguous();
  const Tensor k_dense = k.contiguous();
  native::for_each_index(out0.device(), out0.numel(), [=] GPU_LAMBDA(int64_t i) {
    // Element i of the result.
  });
  return {out0, out1};
}

std::tuple<Tensor, Tensor> RopeMeta(const Tensor& q, const Tensor& k, double base) {
  // Delete this line when what follows it is written.
  NotWritten("RopeMeta", "musa::rope", "kernels/ported/Rope.cu");

  // The result's sizes and dtype, without data: at::empty(sizes, q.options()).
}

}  // namespace at::musa
""",
    )
    assert_expected_inline(
        found["tests/ops/test_op_rope.py"],
        """\
\"\"\"musa::rope against plain PyTorch on the CPU, with shapes on the meta device.\"\"\"

from __future__ import annotations

import torch

from opgen.testing import check_overload


def rope(q, k, *, base=10000.0):
    \"\"\"What musa::rope computes, written with PyTorch's own operators.\"\"\"
    raise NotImplementedError("musa::rope is to be written in plain PyTorch here")


def test_rope_agrees_with_plain_pytorch(device: str) -> None:
    check_overload(
        "musa::rope",
        reference=rope,
        device=device,
        dtypes=(torch.float32, torch.float64),
        count=60,
    )


def test_rope_has_shapes_without_data() -> None:
    \"\"\"On the meta device the operator gives the shapes and dtypes that it gives on the device.\"\"\"
    raise NotImplementedError("call torch.ops.musa.rope on tensors of device meta here, and compare")
""",
    )


def test_the_test_of_an_operator_of_our_own_has_its_defaults(project: Path) -> None:
    schema = (
        "musa::f(Tensor self, int[2] size=[1,2], *, str mode='a', bool flag=True, MemoryFormat? format=None) -> Tensor"
    )
    text = created(project, schema)["tests/ops/test_op_f.py"]
    assert "def f(self, size=[1, 2], *, mode='a', flag=True, format=None):" in text


def test_through_the_cpu_on_purpose_needs_no_source(project: Path) -> None:
    found = created(project, "bincount", "--family", "cpu_fallback")
    assert found["yaml"] == "- func: bincount\n  dispatch:\n    PrivateUse1: cpu_fallback"
    assert [name for name in found if name.startswith("kernels/")] == []
    assert "fallback=True" in found["tests/ops/test_op_bincount.py"]


def test_a_structured_group_goes_through_the_cpu_by_its_out_overload(project: Path) -> None:
    found = created(project, "hash_tensor", "--kind", "cpu_fallback")
    assert found["yaml"] == "- func: hash_tensor\n- func: hash_tensor.out\n  dispatch:\n    PrivateUse1: cpu_fallback"


def test_a_random_operator_of_our_own_gets_the_tag_that_says_so(project: Path) -> None:
    found = created(project, "musa::noise(Tensor q, Generator? generator=None) -> Tensor")
    assert "  tags: nondeterministic_seeded\n  dispatch:" in found["yaml"]
    assert "tags:" not in created(project, "musa::calm(Tensor q) -> Tensor")["yaml"]


def test_a_round_trip_of_one_s_own_through_the_cpu_is_complete(project: Path) -> None:
    found = created(project, "lu_unpack", "--kind", "legacy_meta", "--family", "cpu_fallback")
    source = found["kernels/cpu_fallback/LuUnpack.cpp"]
    assert "NotWritten" not in source and "U.copy_(std::get<2>(results));" in source


def test_a_view_and_a_known_shared_function_are_reused(project: Path) -> None:
    assert created(project, "view_as_real")["yaml"].endswith("PrivateUse1: view_as_real")
    found = created(project, "take")
    assert found["yaml"].count("PrivateUse1: take") == 2
    assert "REGISTER_DISPATCH(take_stub, &take_kernel)" in found["kernels/ported/Take.cu"]


def test_an_autogenerated_overload_gets_an_entry_of_its_own(project: Path) -> None:
    found = created(project, "celu.out")
    assert found["yaml"] == "- func: celu.out\n  dispatch:\n    PrivateUse1: CeluOut"


def test_the_rest_of_a_listed_group_follows_without_a_kernel(project: Path) -> None:
    found = created(project, "sub_.Tensor")
    assert found["yaml"] == "- func: sub_.Tensor"
    assert [name for name in found if name.startswith("kernels/")] == []


def test_a_second_group_of_the_same_name_gets_files_of_its_own(project: Path) -> None:
    assert "kernels/mudnn/Div.cpp" in created(project, "div.Tensor", "--family", "mudnn")
    assert {"kernels/mudnn/DivTensorMode.cpp", "tests/ops/test_op_div_tensor_mode.py"} <= created(
        project, "div.Tensor_mode", "--family", "mudnn"
    ).keys()


def test_a_skeleton_is_listed_but_not_counted(project: Path) -> None:
    created(project, "im2col")
    text = CliRunner().invoke(opgen, ["coverage"], catch_exceptions=False).stdout
    assert any(line.split()[:2] == ["skeleton", "2"] for line in text.splitlines()), text
    told = CliRunner().invoke(opgen, ["explain", "im2col"], catch_exceptions=False).stdout
    assert "raises NotImplementedError" in told and "write the kernel: kernels/mudnn/Im2col.cpp" in told


def test_the_report_says_where_and_what_comes_next(project: Path) -> None:
    text = run("im2col").output
    assert_expected_inline(
        text,
        """\
im2col: unstructured, own; a function of our own: it checks, guards and allocates by itself
  yaml/musa_functions.yaml:24: im2col, im2col.out (after 'addmm', the last of kernels/mudnn)
  kernels/mudnn/Im2col.cpp
  tests/ops/test_op_im2col.py
Next
  write the kernel: kernels/mudnn/Im2col.cpp
  opgen build
  python -m pytest tests/ops/test_op_im2col.py
  python -m pytest tests/ops -k "[im2col] or [im2col.out]"
""",
    )


def test_a_dry_run_shows_a_patch_and_writes_nothing(project: Path) -> None:
    before = tree(project)
    result = run("im2col", "--dry-run")
    assert result.exit_code == 0 and tree(project) == before
    patch = project.parent / f"{project.name}.patch"
    patch.write_text(result.stdout)
    git = shutil.which("git")
    assert git is not None, "git is needed, as for working on the project"
    subprocess.run([git, "apply", "--unsafe-paths", str(patch)], cwd=project, check=True)
    applied = tree(project)
    for path in project.rglob("*"):
        if path.is_file() and path.relative_to(project).as_posix() not in before:
            path.unlink()
    (project / "yaml" / "musa_functions.yaml").write_text(LIST)
    run("im2col")
    assert tree(project) == applied


# ---- what is refused


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nonzero"], "yaml/musa_functions.yaml:9:9: error: 'nonzero' is listed already"),
        (["hypot"], "is listed for other releases of PyTorch only"),
        (["addmm"], "is listed for SparsePrivateUse1"),
        (["cudnn_batch_norm"], "belongs to one vendor's library, cuDNN"),
        (["matmul"], "is composite (CompositeImplicitAutograd)"),
        (["trill"], "did you mean 'tril'"),
        (["lerp"], "is the name of several overloads"),
        (["view_as_real", "--kind", "cpu_fallback"], "cannot be cpu_fallback: it is a view"),
        (["poisson", "--family", "cpu_fallback"], "cannot go through the CPU: it is random"),
        (["empty.memory_format", "--kind", "cpu_fallback"], "takes no tensor"),
        (["im2col", "--kind", "legacy"], "'im2col' is not structured in PyTorch: it cannot be legacy"),
        (["triu", "--kind", "legacy"], "cannot be legacy: upstream's implementation triu_cuda is CUDA's alone"),
        (["lerp.Scalar", "--kind", "legacy", "--family", "cpu_fallback"], "runs PyTorch's code on the device"),
        (["bincount", "--kind", "cpu_fallback", "--family", "mudnn"], "has no kernel in kernels/mudnn"),
        (["im2col", "--name", "Nonzero"], "is taken: kernels/mudnn/Kernels.cpp:4"),
        (["im2col", "--name", "im2col_cpu"], "is upstream's own kernel"),
        (["im2col", "--name", "class"], "is not a name for a C++ function"),
        (["im2col", "--name", "Im2colñ"], "is not a name for a C++ function"),
        (["im2col", "--name", "cpu_fallback"], "is reserved"),
        (["im2col", "--name", "_Im2col"], "'_Im2col' is reserved: C++ keeps"),
        (["im2col", "--name", "Im2__col"], "'Im2__col' is reserved: C++ keeps"),
        (["im2col", "--name", "at"], "'at' is the name of a namespace"),
        (["im2col", "--name", "std"], "'std' is the name of a namespace"),
        (["im2col", "--name", "self"], "'self' means something else"),
        (["im2col", "--name", "Tensor"], "'Tensor' means something else"),
        (["im2col", "--name", "IntArrayRef"], "'IntArrayRef' means something else"),
        (["triu", "--kind", "legacy_meta", "--name", "diagonal"], "'diagonal' means something else"),
        (["musa::x(Tensor a) -> Tensor", "--name", "a"], "'a' means something else"),
        (["hspmm"], "its kernels are for sparse tensors only (SparseCPU, SparseCUDA)"),
        (["mkldnn_linear"], "its kernels are for MKL-DNN tensors only (MkldnnCPU)"),
        (["zeros", "--kind", "reused"], "zeros_symint is upstream's and serves every device already"),
        (["coalesce", "--kind", "reused"], "registered for one, it would lose its gradient"),
        (["im2col", "--name", "Kernels"], "kernels/mudnn/Kernels.cpp exists already"),
        (["hash_tensor", "--name", "X"], "names no kernel of ours"),
        (["sub_.Tensor", "--kind", "unstructured"], "its kernel is decided by 'sub.out'"),
        (["musa::x"], "has no operator 'musa::x'"),
        (["musa::x(Tensor a"], "parenthesis is never closed"),
        (["musa::x(Tensr a) -> Tensor"], "Tensr"),
        (["musa::x(Tensor class) -> Tensor"], "keyword of C++"),
        (["aten::x(Tensor a) -> Tensor"], "is no schema in a namespace of its own"),
        (["x(Tensor a) -> Tensor"], "is no schema in a namespace of its own"),
        (["musa::x(Tensor a) -> Tensor", "--family", "cpu_fallback"], "no kernel on the CPU to fall back to"),
        (["musa::x(Tensor a) -> Tensor", "--kind", "legacy"], "nothing to take over"),
    ],
)
def test_refusals_say_why_and_change_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused(project, capsys, *arguments)


@pytest.mark.parametrize(
    "op, key, message",
    [
        ("matmul", "NestedTensorPrivateUse1", "nothing is to be added; its entry for NestedTensorPrivateUse1 stays"),
        ("_to_copy", "NestedTensorPrivateUse1", "is composite (CompositeExplicitAutograd)"),
        ("sub.Tensor", "SparsePrivateUse1", "'sub.Tensor' is listed already"),
    ],
)
def test_an_entry_for_another_key_is_not_to_be_extended_where_the_device_is_served(
    project: Path, capsys: pytest.CaptureFixture[str], op: str, key: str, message: str
) -> None:
    path = project / "yaml" / "musa_functions.yaml"
    entry = f"- func: {op}\n  dispatch:\n    {key}: Other\n"
    path.write_text(LIST.replace("- func: sub.Tensor\n", "") + entry)
    said = refused(project, capsys, op)
    assert message in said and "to that entry's `dispatch:`" not in said


def test_what_check_would_warn_about_is_not_written(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "opgen.new.choose.fallback_entries", lambda members, op, upstream: [str(f.func.name) for f in members]
    )
    said = refused(project, capsys, "hash_tensor", "--kind", "cpu_fallback")
    assert "this would be of no use: 'PrivateUse1: cpu_fallback' on 'hash_tensor' changes nothing" in said


def test_a_list_that_is_wrong_elsewhere_is_no_obstacle_one_that_is_no_yaml_is(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "yaml" / "musa_functions.yaml"
    path.write_text(f"{LIST}- func: no_such_operator\n")
    assert run("im2col").exit_code == 0
    path.write_text(f"{LIST}- func: [\n")
    assert "not valid YAML" in refused(project, capsys, "linalg_cross")


# ---- all or nothing


@pytest.fixture
def failing_write(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """The list's replacement fails with the exception given, after all else has been written."""
    given: list[BaseException] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if given and Path(target).name == "musa_functions.yaml":
            raise given[0]
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    yield given


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt(), SystemExit(143)])
def test_a_failure_at_the_last_moment_leaves_no_trace(
    project: Path, failing_write: list[BaseException], fault: BaseException
) -> None:
    before = tree(project)
    failing_write.append(fault)
    with pytest.raises(SystemExit):
        main(["new", "im2col", "--family", "ported"])
    assert tree(project) == before
    assert not (project / "kernels" / "ported").exists()


def test_a_read_only_list_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "yaml" / "musa_functions.yaml").chmod(0o444)
    assert "read-only" in refused(project, capsys, "im2col")


def test_mode_and_link_of_the_list_stay(project: Path) -> None:
    path = project / "yaml" / "musa_functions.yaml"
    real = project / "real.yaml"
    path.rename(real)
    path.symlink_to(real)
    real.chmod(0o640)
    assert run("im2col").exit_code == 0
    assert path.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert "im2col" in real.read_text()
    assert (project / "kernels/mudnn/Im2col.cpp").stat().st_mode & 0o044


def test_a_list_that_was_saved_meanwhile_is_left_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project / "yaml" / "musa_functions.yaml"
    stage = write._stage

    def saved_meanwhile(target: Path, data: bytes, staged: list[Path]) -> Path:
        path.write_text("- func: abs\n")
        return stage(target, data, staged)

    monkeypatch.setattr(write, "_stage", saved_meanwhile)
    with pytest.raises(SystemExit):
        main(["new", "im2col"])
    assert path.read_text() == "- func: abs\n"
    assert sorted(tree(project)) == [".clang-format", "kernels/mudnn/Kernels.cpp", "yaml/musa_functions.yaml"]


def test_what_a_killed_run_has_left_is_no_obstacle(project: Path) -> None:
    run("im2col")
    (project / "yaml" / "musa_functions.yaml").write_text(LIST)  # killed before the list was replaced
    assert run("im2col").exit_code == 0
    assert "im2col.out" in (project / "yaml" / "musa_functions.yaml").read_text()


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "opgen.cli", "new", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_at_once_both_arrive(project: Path) -> None:
    runs = [start(project, op) for op in ("im2col", "col2im", "im2col")]
    codes = sorted(process.wait(60) for process in runs)
    assert codes == [0, 0, 1]
    text = (project / "yaml" / "musa_functions.yaml").read_text()
    assert text.count("- func: im2col\n") == 1 and text.count("- func: col2im\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_all_or_nothing(project: Path, number: int) -> None:
    before = tree(project)
    for delay in (0.2, 0.6, 1.0):
        process = start(project, "im2col")
        time.sleep(delay)
        process.send_signal(number)
        process.wait(60)
        after = tree(project)
        if after != before:
            assert {"kernels/mudnn/Im2col.cpp", "tests/ops/test_op_im2col.py"} <= after.keys()
            assert b"im2col.out" in after["yaml/musa_functions.yaml"]
            return
        assert sorted(after) == sorted(before)


# ---- skeletons compile

CASES = {
    "legacy": ["--kind", "legacy"],
    "legacy, stub kernel without the port": ["--kind", "legacy", "--family", "mudnn"],
    "legacy_meta": ["--kind", "legacy_meta"],
    "legacy_meta, ported": ["--kind", "legacy_meta", "--family", "ported"],
    "legacy_meta, through the CPU": ["--kind", "legacy_meta", "--family", "cpu_fallback"],
    "customized": ["--kind", "customized"],
    "unstructured": ["--kind", "unstructured"],
    "unstructured, ported": ["--kind", "unstructured", "--family", "ported"],
    "unstructured, through the CPU": ["--kind", "unstructured", "--family", "cpu_fallback"],
    "reused": ["--kind", "reused"],
    "cpu_fallback": ["--family", "cpu_fallback"],
    "autogen": [],
}


def test_every_kind_is_made_in_this_project_and_its_skeleton_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operator per kind and family that the project lacks, added to a copy of it."""
    project = tmp_path / "project"
    for source in [*(ROOT / "kernels").rglob("*.*"), ROOT / "yaml" / "musa_functions.yaml", ROOT / ".clang-format"]:
        link = project / source.relative_to(ROOT)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source)
    operator_list = project / "yaml" / "musa_functions.yaml"
    text = operator_list.read_text()
    operator_list.unlink()
    operator_list.write_text(text)
    (project / "tests" / "ops").mkdir(parents=True)
    monkeypatch.chdir(project)
    known = set(tree(project))
    monkeypatch.setattr("opgen.upstream.load_upstream", lambda install: upstream())
    listed = {spec.func for spec in analyse(Sources.of(Project(project)), Diagnostics(), need_sources=False).specs}
    used: set[str] = set()
    for case, arguments in CASES.items():
        used.add(next((op for op in fitting(listed | used, arguments) if run(op, *arguments).exit_code == 0), case))
    assert not used & CASES.keys(), "no operator was found for these kinds"
    assert run("musa::rope(Tensor q, Tensor? k, int[] dims, *, float base=1e4) -> (Tensor, Tensor)").exit_code == 0
    sources = [name for name in tree(project) if name not in known and name.startswith("kernels/")]
    assert {name.split("/")[1] for name in sources} == {"mudnn", "ported", "cpu_fallback"}

    diagnostics = Diagnostics()
    out = tmp_path / "generated"
    summary = generate(Sources.of(Project(project)), out, diagnostics)
    assert summary is not None, [str(item) for item in diagnostics]
    assert compile_all(project, sources, out, tmp_path) == ""


def fitting(listed: set[str], arguments: list[str]) -> Iterator[str]:
    """Operators that the list lacks and that can have the kind asked for."""
    structured = {"legacy", "legacy_meta", "customized"} & set(arguments)
    for op in upstream().names:
        group = upstream().structured_group(op)
        if op in listed or bool(group) != bool(structured) or upstream().is_generated(op) == bool(arguments):
            continue
        wanted = "CPU" if arguments else "CompositeExplicitAutograd"
        if structured or upstream().kernel(op, wanted) is not None:
            yield op


def compile_all(project: Path, sources: list[str], generated: Path, scratch: Path) -> str:
    """What the compiler has to say; one run, because reading PyTorch's headers takes far longer than the rest."""
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "a C++ compiler is needed, as for building the project"
    units = []
    for name in (*sources, "kernels/ported/EachElement.cuh", "kernels/ported/OpmathDispatch.cuh"):
        if not name.endswith((".cu", ".cuh")):
            units.append(project / name)
            continue
        suffix = ".mu" if name.endswith(".cu") else ".muh"
        ported = scratch / "ported" / Path(name).with_suffix(suffix)
        translated = scratch / "mcc" / (f"{Path(name).with_suffix(suffix)}" + (".cpp" if suffix == ".mu" else ""))
        for command in (
            ["-m", "opgen.port", str(project / name), "--out", str(ported)],
            [str(ROOT / "sdk/host/mcc"), "--translate", str(ported), "-o", str(translated), "--presumed", name],
        ):
            subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
        if suffix == ".mu":
            units.append(translated)
    unit = scratch / "all.cpp"
    unit.write_text("".join(f'#include "{path}"\n' for path in units))
    torch = find_torch().torch
    include = torch / "include"
    wheel = scratch / "mcc/wheel"  # PyTorch's device headers, as the build ports them
    own = str(ROOT / "torch_musa/csrc/porting")
    ported_wheel = str(scratch / "ported/wheel")
    for command in (
        ["-m", "opgen.port", str(torch), "--torch-headers", "--own", own, "--out", ported_wheel],
        [str(ROOT / "sdk/host/mcc"), "--translate", ported_wheel, "-o", str(wheel)],
    ):
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    cccl = subprocess.check_output([sys.executable, str(ROOT / "sdk/host/mcc/cccl.py")], text=True)
    porting = [ROOT / "torch_musa/csrc/porting_host", ROOT / "torch_musa/csrc/porting"]
    roots = [scratch / "mcc", generated / "include", ROOT, *porting, ROOT / "sdk/include"]
    done = subprocess.run(
        [
            compiler,
            *("-fsyntax-only", "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", "-DNDEBUG", "-Wall"),
            *("-Wno-unused-local-typedefs", "-Wno-sign-compare", "-Wno-maybe-uninitialized"),
            *(f"-I{root}" for root in roots),
            *("-include", str(ROOT / "torch_musa/csrc/porting/device_prelude.h")),
            *(f"-isystem{root}" for root in (wheel, cccl.strip(), include, include / "torch/csrc/api/include")),
            str(unit),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr
