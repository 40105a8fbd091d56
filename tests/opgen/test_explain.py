"""`opgen explain`: what is told of an operator, in text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from expecttest import assert_expected_inline
from generator_cases import upstream

from opgen.cli import opgen
from opgen.explain.text import wrap_code
from opgen.find import find_operator, normalized
from opgen.stub_signatures import parse_stub_signatures
from opgen.stubs import legacy_stubs, reused_stubs
from opgen.upstream import find_torch
from opgen.ways import WayKind, needed_stubs, ways

LIST = """\
- func: lerp.Scalar
- func: lerp_.Scalar
- func: lerp.Scalar_out
- func: tril
- func: tril_
- func: tril.out
  dispatch:
    PrivateUse1: MusaTril
- func: add.Tensor
- func: add.out
  structured_inherits: MyMetaBase
  dispatch:
    PrivateUse1: MusaAdd
- func: nonzero
  dispatch:
    PrivateUse1: Nonzero
- func: bincount
  dispatch:
    PrivateUse1: cpu_fallback
- func: roll
  dispatch:
    PrivateUse1: Roll
- func: musa::rope(Tensor q) -> Tensor
  dispatch:
    PrivateUse1: Rope
"""
SOURCES = {
    "ported/Lerp.cu": "namespace at::native {\nREGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_kernel)\n}\n",
    "mudnn/Own.cpp": """\
namespace at::musa {
TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
TORCH_META_FUNC2(add, Tensor)(const Tensor& self, const Tensor& other, const Scalar& alpha) {}
TORCH_IMPL_FUNC(MusaAdd)(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& out) {}
Tensor Nonzero(const Tensor& self) {}
Tensor Roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  NotWritten("Roll", "roll", "kernels/mudnn/Own.cpp");
}
Tensor Rope(const Tensor& q) {}
}
""",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "musa_functions.yaml").write_text(LIST)
    for name, text in SOURCES.items():
        path = tmp_path / "kernels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(opgen, ["explain", *arguments], catch_exceptions=False)


def explained(op: str) -> str:
    result = run(op)
    assert result.exit_code == 0, result.output
    text = result.stdout
    prose = re.split(r"^(?:Next|Problems)$", text, flags=re.MULTILINE)[0]  # commands and messages are not wrapped
    assert all(len(line) <= 80 for line in prose.splitlines()), text
    assert "\x1b" not in text
    return re.sub(r"PyTorch \d[\w.+]*", "PyTorch VERSION", text)


def facts(op: str) -> dict[str, Any]:
    result = run(op, "--format", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


# ---- the text


def test_a_legacy_operator(project: Path) -> None:
    assert_expected_inline(
        explained("lerp.Scalar_out"),
        """\
lerp.Scalar_out(Tensor self, Tensor end, Scalar weight, *, Tensor(a!) out) ->
    Tensor(a!)

operator   PyTorch VERSION, structured
           pointwise
           meta class on TensorIteratorBase
           counted in coverage: upstream has it for CUDA
group      lerp.Scalar      functional  yaml/musa_functions.yaml:1
           lerp_.Scalar     in-place    yaml/musa_functions.yaml:2
           lerp.Scalar_out  out         yaml/musa_functions.yaml:3
on device  runs on the device
entry      yaml/musa_functions.yaml:3:9
chosen     PrivateUse1: legacy
           at::native::lerp_Scalar
           kernels/ported/Lerp.cu:2 (ported)
           no kernel is named: upstream's implementation lerp_Scalar reaches the
             kernel through a DispatchStub
upstream   lerp_Scalar (structured): CPU, CUDA, MPS
stubs      lerp_kernel_scalar_weight <ATen/native/Lerp.h>
             void lerp_kernel_scalar_weight_impl(at::TensorIteratorBase& iter,
                 const Scalar& weight)
             registered at kernels/ported/Lerp.cu:2
meta class struct TORCH_API structured_lerp_Scalar : public TensorIteratorBase {
             void meta(const at::Tensor & self, const at::Tensor & end,
                 const at::Scalar & weight);
           };
impl class struct TORCH_API structured_lerp_Scalar
               : public at::meta::structured_lerp_Scalar {
             void impl(const at::Tensor & self, const at::Tensor & end,
                 const at::Scalar & weight, const at::Tensor & out);
           };

Ways to give it a kernel
legacy        meta function and implementation lerp_Scalar are upstream's; the
                kernel hangs on lerp_kernel_scalar_weight
              void lerp_kernel_scalar_weight_impl(at::TensorIteratorBase& iter,
                  const Scalar& weight)
              REGISTER_DISPATCH(lerp_kernel_scalar_weight,
                  &lerp_kernel_scalar_weight_impl)
legacy_meta   the meta function is upstream's; the implementation is ours
              TORCH_IMPL_FUNC(MusaLerpScalar)(const at::Tensor & self,
                  const at::Tensor & end, const at::Scalar & weight,
                  const at::Tensor & out)
customized    meta function and implementation are ours: for checks, a base
                class or precomputed values of our own (with 'precomputed' the
                macro is TORCH_PRECOMPUTE_META_FUNC, and the implementation gets
                the values)
              TORCH_META_FUNC2(lerp, Scalar)(const at::Tensor & self,
                  const at::Tensor & end, const at::Scalar & weight)
              TORCH_IMPL_FUNC(MusaLerpScalar)(const at::Tensor & self,
                  const at::Tensor & end, const at::Scalar & weight,
                  const at::Tensor & out)
unstructured  a function of our own for every overload of the group: it checks,
                guards and allocates by itself
              at::Tensor LerpScalar(const at::Tensor & self,
                  const at::Tensor & end, const at::Scalar & weight)
              at::Tensor & LerpScalar_(at::Tensor & self,
                  const at::Tensor & end, const at::Scalar & weight)
              at::Tensor & LerpScalarOut(const at::Tensor & self,
                  const at::Tensor & end, const at::Scalar & weight,
                  at::Tensor & out)
cpu_fallback  the CPU computes it, on purpose and counted; no source is needed

Next
  opgen build
  python -m pytest tests/ops -k "[lerp.Scalar] or [lerp_.Scalar] or [lerp.Scalar_out]"
""",
    )


def test_an_operator_with_upstream_s_meta_function(project: Path) -> None:
    assert_expected_inline(
        explained("tril.out"),
        """\
tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)

operator   PyTorch VERSION, structured
           counted in coverage: upstream has it for CUDA
group      tril      functional  yaml/musa_functions.yaml:4
           tril_     in-place    yaml/musa_functions.yaml:5
           tril.out  out         yaml/musa_functions.yaml:6
on device  runs on the device
entry      yaml/musa_functions.yaml:6:9
chosen     PrivateUse1: legacy_meta
           at::musa::MusaTril
           kernels/mudnn/Own.cpp:2 (mudnn)
           its out overload names the implementation MusaTril; the meta function
             is upstream's
           TORCH_IMPL_FUNC(MusaTril)(const at::Tensor & self, int64_t diagonal,
               const at::Tensor & out)
upstream   tril_cpu (structured): CPU
           tril_cuda (structured): CUDA, not in the CPU wheel
           tril_mps_out (structured): MPS, not in the CPU wheel
meta class struct TORCH_API structured_tril : public at::impl::MetaBase {
             void meta(const at::Tensor & self, int64_t diagonal);
           };
impl class struct TORCH_API structured_MusaTril
               : public at::meta::structured_tril {
             void impl(const at::Tensor & self, int64_t diagonal,
                 const at::Tensor & out);
           };

Ways to give it a kernel
legacy        not possible: upstream's implementation tril_cuda is CUDA's alone:
                no CPU wheel contains it
legacy_meta   the meta function is upstream's; the implementation is ours
              TORCH_IMPL_FUNC(MusaTril)(const at::Tensor & self,
                  int64_t diagonal, const at::Tensor & out)
customized    meta function and implementation are ours: for checks, a base
                class or precomputed values of our own (with 'precomputed' the
                macro is TORCH_PRECOMPUTE_META_FUNC, and the implementation gets
                the values)
              TORCH_META_FUNC(tril)(const at::Tensor & self, int64_t diagonal)
              TORCH_IMPL_FUNC(MusaTril)(const at::Tensor & self,
                  int64_t diagonal, const at::Tensor & out)
unstructured  a function of our own for every overload of the group: it checks,
                guards and allocates by itself
              at::Tensor Tril(const at::Tensor & self, int64_t diagonal)
              at::Tensor & Tril_(at::Tensor & self, int64_t diagonal)
              at::Tensor & TrilOut(const at::Tensor & self, int64_t diagonal,
                  at::Tensor & out)
cpu_fallback  the CPU computes it, on purpose and counted; no source is needed

Next
  opgen build
  python -m pytest tests/ops -k "[tril] or [tril_] or [tril.out]"
""",
    )


def test_a_customized_operator_of_an_incomplete_looking_group(project: Path) -> None:
    assert_expected_inline(
        explained("add.out"),
        """\
add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) ->
    Tensor(a!)

operator   PyTorch VERSION, structured
           pointwise
           meta class on TensorIteratorBase
           upstream's kernels are made from a ufunc
           counted in coverage: upstream has it for CUDA
group      add.Tensor   functional  yaml/musa_functions.yaml:9
           add_.Tensor  in-place    not listed
           add.out      out         yaml/musa_functions.yaml:10
on device  runs on the device
entry      yaml/musa_functions.yaml:10:9
chosen     PrivateUse1: customized
           at::musa::MusaAdd
           kernels/mudnn/Own.cpp:4 (mudnn)
           its out overload gives 'structured_inherits: MyMetaBase': meta class
             and implementation are ours
           TORCH_META_FUNC2(add, Tensor)(const at::Tensor & self,
               const at::Tensor & other, const at::Scalar & alpha)
           TORCH_IMPL_FUNC(MusaAdd)(const at::Tensor & self,
               const at::Tensor & other, const at::Scalar & alpha,
               const at::Tensor & out)
upstream   ufunc_add_CPU (structured): CPU
           ufunc_add_CUDA (structured): CUDA, not in the CPU wheel
           add_out_mps (structured): MPS, not in the CPU wheel
           add_out_sparse_cpu: SparseCPU, SparseMeta
           add_out_sparse_cuda: SparseCUDA, not in the CPU wheel
           add_out_sparse_mps: SparseMPS, not in the CPU wheel
           add_out_sparse_compressed_cpu: SparseCsrCPU, SparseCsrMeta
           add_out_sparse_compressed_cuda: SparseCsrCUDA, not in the CPU wheel
           add_out_mtia (structured): MTIA, not in the CPU wheel
           mkldnn_add_out: MkldnnCPU
meta class struct TORCH_API structured_add_Tensor
               : public at::musa::MyMetaBase {
             void meta(const at::Tensor & self, const at::Tensor & other,
                 const at::Scalar & alpha);
           };
impl class struct TORCH_API structured_MusaAdd
               : public at::musa::structured_add_Tensor {
             void impl(const at::Tensor & self, const at::Tensor & other,
                 const at::Scalar & alpha, const at::Tensor & out);
           };

Ways to give it a kernel
legacy        not possible: upstream's implementation ufunc_add_CUDA is CUDA's
                alone: no CPU wheel contains it
legacy_meta   the meta function is upstream's; the implementation is ours
              TORCH_IMPL_FUNC(MusaAddTensor)(const at::Tensor & self,
                  const at::Tensor & other, const at::Scalar & alpha,
                  const at::Tensor & out)
customized    meta function and implementation are ours: for checks, a base
                class or precomputed values of our own (with 'precomputed' the
                macro is TORCH_PRECOMPUTE_META_FUNC, and the implementation gets
                the values)
              TORCH_META_FUNC2(add, Tensor)(const at::Tensor & self,
                  const at::Tensor & other, const at::Scalar & alpha)
              TORCH_IMPL_FUNC(MusaAddTensor)(const at::Tensor & self,
                  const at::Tensor & other, const at::Scalar & alpha,
                  const at::Tensor & out)
unstructured  a function of our own for every overload of the group: it checks,
                guards and allocates by itself
              at::Tensor AddTensor(const at::Tensor & self,
                  const at::Tensor & other, const at::Scalar & alpha)
              at::Tensor & AddTensor_(at::Tensor & self,
                  const at::Tensor & other, const at::Scalar & alpha)
              at::Tensor & AddOut(const at::Tensor & self,
                  const at::Tensor & other, const at::Scalar & alpha,
                  at::Tensor & out)
cpu_fallback  the CPU computes it, on purpose and counted; no source is needed

Next
  opgen build
  python -m pytest tests/ops -k "[add.Tensor] or [add.out]"
""",
    )


def test_a_plain_operator(project: Path) -> None:
    assert_expected_inline(
        explained("nonzero"),
        """\
nonzero(Tensor self) -> Tensor

operator   PyTorch VERSION
           counted in coverage: upstream has it for CUDA
group      nonzero      functional  yaml/musa_functions.yaml:14
           nonzero.out  out         not listed
on device  runs on the device
entry      yaml/musa_functions.yaml:14:9
chosen     PrivateUse1: unstructured, own
           at::musa::Nonzero
           kernels/mudnn/Own.cpp:5 (mudnn)
           upstream's operator is unstructured; Nonzero is our own function
           at::Tensor Nonzero(const at::Tensor & self)
upstream   nonzero_cpu: CPU
           nonzero_cuda: CUDA, not in the CPU wheel
           nonzero_mps: MPS, not in the CPU wheel

Ways to give it a kernel
unstructured  a function of our own: it checks, guards and allocates by itself
              at::Tensor Nonzero(const at::Tensor & self)
              at::Tensor & NonzeroOut(const at::Tensor & self, at::Tensor & out)
reused        nonzero_cpu is upstream's for the CPU: it serves a device only if
                it never looks at memory
cpu_fallback  the CPU computes it, on purpose and counted; no source is needed

Next
  opgen build
  python -m pytest tests/ops -k "[nonzero]"
""",
    )


def test_an_operator_that_is_not_listed(project: Path) -> None:
    assert_expected_inline(
        explained("hypot.out"),
        """\
hypot.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)

operator   PyTorch VERSION, structured
           pointwise
           meta class on TensorIteratorBase
           counted in coverage: upstream has it for CUDA
group      hypot      functional  not listed
           hypot_     in-place    not listed
           hypot.out  out         not listed
on device  not listed: runs on the CPU, with a warning
entry      none
upstream   hypot_out (structured): CPU, CUDA, MPS
stubs      hypot_stub <ATen/native/BinaryOps.h>
             void hypot_kernel(TensorIteratorBase& iter)
             registered by no source
meta class struct TORCH_API structured_hypot : public TensorIteratorBase {
             void meta(const at::Tensor & self, const at::Tensor & other);
           };
impl class struct TORCH_API structured_hypot_out
               : public at::meta::structured_hypot {
             void impl(const at::Tensor & self, const at::Tensor & other,
                 const at::Tensor & out);
           };

Ways to give it a kernel
legacy        meta function and implementation hypot_out are upstream's; the
                kernel hangs on hypot_stub
              void hypot_kernel(TensorIteratorBase& iter)
              REGISTER_DISPATCH(hypot_stub, &hypot_kernel)
legacy_meta   the meta function is upstream's; the implementation is ours
              TORCH_IMPL_FUNC(MusaHypot)(const at::Tensor & self,
                  const at::Tensor & other, const at::Tensor & out)
customized    meta function and implementation are ours: for checks, a base
                class or precomputed values of our own (with 'precomputed' the
                macro is TORCH_PRECOMPUTE_META_FUNC, and the implementation gets
                the values)
              TORCH_META_FUNC(hypot)(const at::Tensor & self,
                  const at::Tensor & other)
              TORCH_IMPL_FUNC(MusaHypot)(const at::Tensor & self,
                  const at::Tensor & other, const at::Tensor & out)
unstructured  a function of our own for every overload of the group: it checks,
                guards and allocates by itself
              at::Tensor Hypot(const at::Tensor & self,
                  const at::Tensor & other)
              at::Tensor & Hypot_(at::Tensor & self, const at::Tensor & other)
              at::Tensor & HypotOut(const at::Tensor & self,
                  const at::Tensor & other, at::Tensor & out)
cpu_fallback  the CPU computes it, on purpose and counted; no source is needed

Next
  opgen new hypot.out    (adds hypot, hypot_, hypot.out)
""",
    )


def test_a_name_that_overloads_share_lists_them(project: Path) -> None:
    assert_expected_inline(
        explained("add"),
        """\
'add' is the name of 6 overloads; `opgen explain` tells of each:

  add.Scalar      not listed: PyTorch's own kernel calls other operators
  add.Scalar_out  not listed: PyTorch's own kernel calls other operators
  add.Tensor      runs on the device
  add.out         runs on the device
  add_.Scalar     not listed: PyTorch's own kernel calls other operators
  add_.Tensor     not listed: PyTorch allocates the result and calls add.out
""",
    )


def test_an_operator_of_our_own(project: Path) -> None:
    assert_expected_inline(
        explained("musa::rope"),
        """\
musa::rope(Tensor q) -> Tensor

operator   an operator of our own
on device  runs on the device
entry      yaml/musa_functions.yaml:23:9
chosen     PrivateUse1: unstructured, new
           at::musa::Rope
           kernels/mudnn/Own.cpp:9 (mudnn)
           the entry defines a new operator
           at::Tensor Rope(const at::Tensor & q)

Next
  opgen build
  python -m pytest tests/ops -k "rope"
""",
    )


# ---- single facts


@pytest.mark.parametrize(
    "op, state, trait",
    [
        ("bincount", "runs on the CPU, on purpose", "counted in coverage"),
        ("roll", "raises NotImplementedError: its kernel is only a skeleton", "counted in coverage"),
        ("matmul", "PyTorch's own kernel calls other operators", "composite (CompositeImplicitAutograd)"),
        ("celu.out", "PyTorch's own kernel calls other operators", "made by torchgen from celu_"),
        ("poisson", "raises, as it cannot run on the CPU instead", "random"),
        ("view", "raises, as it cannot run on the CPU instead", "view"),
        ("randperm.generator_out", "raises", "random"),
        ("empty.memory_format", "raises, as it cannot run on the CPU instead", "factory"),
        ("cudnn_batch_norm", "runs on the CPU, with a warning", "vendor-only (cuDNN)"),
        ("index_copy.out", "runs on the CPU, with a warning", "precomputed upstream: dim -> int dim"),
        ("add_.Tensor", "PyTorch allocates the result and calls add.out", "pointwise"),
    ],
)
def test_state_and_traits(project: Path, op: str, state: str, trait: str) -> None:
    found = facts(op)
    assert state in found["state"]
    assert any(trait in text for text in found["traits"]), found["traits"]


def test_json_has_every_fact_of_the_text(project: Path) -> None:
    found = facts("lerp.Scalar")
    assert found["choices"][0]["kind"] == "legacy"
    assert found["choices"][0]["source"] == "kernels/ported/Lerp.cu:2"
    assert found["stubs"][0]["registered"] == ["kernels/ported/Lerp.cu:2"]
    assert {way["kind"] for way in found["ways"]} == {
        "legacy",
        "legacy_meta",
        "customized",
        "unstructured",
        "cpu_fallback",
    }
    assert found["entry"] == "yaml/musa_functions.yaml:1:9"
    several = json.loads(run("add", "--format", "json").stdout)
    assert {one["op"] for one in several} >= {"add.Tensor", "add.out", "add_.Tensor"}


def test_errors_of_the_entry_are_shown(project: Path) -> None:
    (project / "yaml" / "musa_functions.yaml").write_text("- func: nonzero\n- func: musa::half\n")
    for op, fault in [("nonzero", "needs a kernel for PrivateUse1"), ("musa::half", "needs its whole schema")]:
        result = run(op)
        assert result.exit_code == 1
        assert fault in result.stdout and fault in result.stderr


def test_no_answer_is_given_from_a_list_that_cannot_be_read(project: Path) -> None:
    for text in (LIST + "- func: [\n", "tril: 1\n"):
        (project / "yaml" / "musa_functions.yaml").write_text(text)
        for options in ((), ("--format", "json")):
            result = run("tril", *options)
            assert (result.exit_code, result.stdout) == (1, "")
            assert "yaml/musa_functions.yaml:" in result.stderr and "no answer" in result.stderr


@pytest.mark.parametrize("op, doubtful", [("tril", True), ("tril.out", True), ("nonzero", False), ("hypot", False)])
def test_a_fault_of_the_group_makes_the_answer_doubtful(project: Path, op: str, doubtful: bool) -> None:
    path = project / "yaml" / "musa_functions.yaml"
    for before, after in [
        ("- func: tril.out\n", "- func: tril.out\n  dispach: 1\n"),
        ("- func: tril.out\n", "- dispach: 1\n  func: tril.out\n"),
    ]:
        path.write_text(LIST.replace(before, after))
        result = run(op)
        assert result.exit_code == doubtful
        assert ("unknown key 'dispach'" in result.stderr) == doubtful
        assert f"{op}(" in result.stdout


def test_a_kernel_that_is_still_to_be_written_leaves_the_answer_right(project: Path) -> None:
    (project / "kernels" / "mudnn" / "Own.cpp").unlink()
    for op in ("nonzero", "tril.out", "add.out", "musa::rope"):
        result = run(op)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "cannot be built: no source defines its kernel" in result.stdout


def test_an_entry_without_a_name_may_be_the_one_of_an_operator_that_is_not_listed(project: Path) -> None:
    path = project / "yaml" / "musa_functions.yaml"
    path.write_text(f"{LIST}- func: hypot-out\n")
    assert run("nonzero").exit_code == 0
    result = run("hypot.out")
    assert result.exit_code == 1 and "'hypot-out' is not an operator name" in result.stderr


@pytest.mark.parametrize(
    "word, hint",
    [
        ("trill", "did you mean 'tril'"),
        ("aten::tril.outt", "'tril.out'"),
        ("lerp.Scaler_out", "'lerp.Scalar_out'"),
        ("rope", "'musa::rope'"),
        ("TRIL.out", "did you mean 'tril.out'"),
        ("ADD.tensor", "'add.Tensor'"),
        ("no_such_operator_anywhere", "opgen new 'musa::no_such_operator_anywhere(Tensor self) -> Tensor'"),
    ],
)
def test_misspelt_names(project: Path, word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    from opgen.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["explain", word])
    assert stop.value.code == 1
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("word", ["", " ", "::", "aten::", ".out", "é😀", "(Tensor self) -> Tensor", "x" * 500])
def test_what_can_be_no_operator_s_name_gets_no_suggestion(
    project: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from opgen.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["explain", word])
    assert stop.value.code == 1
    said = capsys.readouterr().err
    assert "has no operator" in said and "name an overload" in said
    assert "opgen new" not in said and "did you mean" not in said
    assert all(len(line) < 200 for line in said.splitlines())


@pytest.mark.parametrize("word", ["tril(Tensor self, int diagonal=0) -> Tensor", "aten::tril (Tensor self) -> Tensor"])
def test_a_schema_is_looked_up_by_its_name(word: str) -> None:
    assert find_operator(word, ["tril", "tril.out"]).op == "tril"


def test_a_composite_operator_that_is_listed_for_another_key_says_what_dense_tensors_get(project: Path) -> None:
    (project / "yaml" / "musa_functions.yaml").write_text(
        "".join(
            f"- func: {op}\n  dispatch:\n    NestedTensorPrivateUse1: K{n}\n"
            for n, op in enumerate(["matmul", "sparse_dim", "zeros.out"])
        )
    )
    for op in ("matmul", "sparse_dim", "zeros.out"):
        state = json.loads(run(op, "--format", "json").stdout)["state"]
        assert state == "listed for NestedTensorPrivateUse1 only: PyTorch's own kernel calls other operators"


def test_an_overload_that_delegates_has_the_kernels_of_its_out_overload() -> None:
    from opgen.explain.facts import _kernels

    for op, kernel, own in [
        ("mean.dim", "mean_out", "mean_quantized_cpu"),
        ("add.Tensor", "ufunc_add_CPU", "add_sparse"),
        ("tril", "tril_cpu", "tril_cpu"),
    ]:
        found = {k.kernel: k.keys for k in _kernels(op, upstream().functions[op], upstream())}
        assert "CPU" in found[kernel] and own in found
    assert "mkldnn_add_out" not in {
        k.kernel for k in _kernels("add.Tensor", upstream().functions["add.Tensor"], upstream())
    }


@pytest.mark.parametrize(
    "word", ["nonzero", "aten::nonzero", "torch.nonzero", "torch.ops.aten.nonzero.default", "at::nonzero", " nonzero "]
)
def test_the_spellings_of_messages_and_of_python_are_understood(word: str) -> None:
    assert find_operator(word, ["nonzero", "nonzero.out"]).op == "nonzero"


def test_every_operator_of_upstream_can_be_explained(project: Path) -> None:
    from opgen.explain.command import load_inputs
    from opgen.explain.facts import explain
    from opgen.explain.text import render

    inputs = load_inputs(None)
    for op in inputs.upstream.names[::7]:
        text = render(explain(op, inputs))
        assert text.startswith("\x1b[1m" + op.partition(".")[0]) or op in text
        assert "Next" in text


# ---- its parts


def test_what_a_stub_s_kernel_must_look_like_is_known_for_every_stub_of_the_tables() -> None:
    include = find_torch().torch / "include"
    for op in [*legacy_stubs(), *reused_stubs()]:
        if op in upstream().functions:
            for stub in needed_stubs(op, upstream(), include) or ():
                assert stub.signature is not None, (op, stub)
                assert "," not in stub.header


def test_stub_signatures_of_every_way_to_declare_one() -> None:
    found = parse_stub_signatures("""
        using unary_fn = void (*)(TensorIteratorBase&);  // DECLARE_DISPATCH(unary_fn, commented_stub)
        typedef void (*binary_fn)(const Tensor &, const bool, int64_t dim);
        DECLARE_DISPATCH(unary_fn, unary_stub)
        DECLARE_DISPATCH(binary_fn, binary_stub);
        DECLARE_DISPATCH(Tensor& (*)(Tensor&, std::pair<int, int>), inline_stub)
        DECLARE_DISPATCH(unknown_fn, unknown_stub)
    """)
    assert {name: signature.definition("k") for name, signature in found.items()} == {
        "unary_stub": "void k(TensorIteratorBase& iter)",
        "binary_stub": "void k(const Tensor& a0, const bool a1, int64_t dim)",
        "inline_stub": "Tensor& k(Tensor& a0, std::pair<int, int> a1)",
    }


def test_every_way_that_is_possible_says_what_to_write() -> None:
    include = find_torch().torch / "include"
    from opgen.backend import MUSA

    for op in upstream().names[::5]:
        for way in ways(op, upstream(), MUSA, include):
            assert way.why
            if way.possible and way.kind in (WayKind.LEGACY_META, WayKind.CUSTOMIZED, WayKind.UNSTRUCTURED):
                assert way.write and way.entry


def test_code_is_broken_at_commas_only() -> None:
    code = "Tensor F(const std::tuple<Tensor, Tensor>& a, int64_t b)"
    assert wrap_code(code, 30) == ["Tensor F(", "    const std::tuple<Tensor, Tensor>& a,", "    int64_t b)"]
    assert wrap_code(code, 80) == [code]
    assert normalized("torch.nn.functional.gelu") == "gelu"
