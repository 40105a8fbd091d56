"""The manual's chapter on operator development is the acceptance test: its fragments, as printed, do what it says.

Lists are classified as it says, the classes it shows are the ones that are emitted, its kernels are found and compile
against what is generated. What it elides (`......`, "compute here") is filled in for the compiler alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from generator_cases import (
    checked,
    classified,
    header,
    index,
    messages,
    registrations,
    rendered,
    shard,
    specs,
    upstream,
)

from opgen.backend import MUSA
from opgen.cpp import canonical_signature
from opgen.diagnostics import Diagnostics
from opgen.kernels import KernelIndex, scan_kernels
from opgen.redundant import warn_redundant
from opgen.spec import load_specs
from opgen.upstream import find_torch

ROOT = Path(__file__).resolve().parents[2]

# ---- lists, as printed. Comments of the manual's are left out; the first two are upstream's own declarations.

UPSTREAM_TRIL = """\
- func: tril(Tensor self, int diagonal=0) -> Tensor
  structured_delegate: tril.out

- func: tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)
  structured_delegate: tril.out

- func: tril.out(Tensor self, int diagonal=0, *, Tensor(a!) out) -> Tensor(a!)
  structured: True # 标记该算子为 structured 的实现方式
  dispatch:
    CUDA: tril_cuda
"""
UPSTREAM_NONZERO = """\
- func: nonzero(Tensor self) -> Tensor
  dispatch:
    CPU: nonzero_cpu
    CUDA: nonzero_cuda
"""
UPSTREAM_VIEW_AS_REAL = """\
- func: view_as_real(Tensor(a) self) -> Tensor(a)
  dispatch:
    CPU, CUDA, MPS, Meta: view_as_real
"""
LEGACY = """\
- func: lerp.Scalar_out
- func: lerp.Scalar
- func: lerp_.Scalar

- func: lerp.Tensor_out
- func: lerp.Tensor
- func: lerp_.Tensor
"""
LEGACY_META = """\
- func: tril
- func: tril_
- func: tril.out
  dispatch:
    PrivateUse1: MusaTril
"""
CUSTOMIZED = """\
- func: tril
- func: tril_
- func: tril.out
  structured_inherits: MyMetaBase # 集成的基类名
  precomputed:
    - diagonal -> int var # 需要传递的中间变量
  dispatch:
    PrivateUse1: MusaTril
"""
NONZERO = """\
- func: nonzero
  dispatch:
    PrivateUse1: Nonzero
"""
UNSTRUCTURED_ADD = """\
- func: add.Tensor
  dispatch:
    PrivateUse1: AddTensor
- func: add_.Tensor
  dispatch:
    PrivateUse1: AddTensor_
- func: add.out
  structured: false
  dispatch:
    PrivateUse1: AddTensorOut
"""
VIEW_AS_REAL = """\
- func: view_as_real
  dispatch:
    PrivateUse1: view_as_real
"""
# The bullets on what an unstructured declaration overrides, applied to a group whose upstream declaration has all four.
NONE_OVERRIDES = """\
- func: add.Tensor
  structured_delegate: none
  dispatch:
    PrivateUse1: AddTensor
- func: add_.Tensor
  structured_delegate: none
  dispatch:
    PrivateUse1: AddTensor_
- func: add.out
  structured: false
  structured_inherits: none
  dispatch:
    PrivateUse1: AddTensorOut
- func: index_copy
  structured_delegate: none
  dispatch:
    PrivateUse1: IndexCopy
- func: index_copy_
  structured_delegate: none
  dispatch:
    PrivateUse1: IndexCopy_
- func: index_copy.out
  structured: false
  precomputed: none
  dispatch:
    PrivateUse1: IndexCopyOut
"""

KINDS = {
    "lerp": (LEGACY, {"legacy"}, {"at::native::lerp_Scalar", "at::native::lerp_Tensor"}),
    "LegacyMeta": (LEGACY_META, {"legacy_meta"}, {"at::musa::MusaTril"}),
    "Customized": (CUSTOMIZED, {"customized"}, {"at::musa::MusaTril"}),
    "nonzero": (NONZERO, {"unstructured own"}, {"at::musa::Nonzero"}),
    "add": (
        UNSTRUCTURED_ADD,
        {"unstructured own"},
        {"at::musa::AddTensor", "at::musa::AddTensor_", "at::musa::AddTensorOut"},
    ),
    "view_as_real": (VIEW_AS_REAL, {"unstructured reused"}, {"at::native::view_as_real"}),
    "none": (
        NONE_OVERRIDES,
        {"unstructured own"},
        {f"at::musa::{name}{suffix}" for name in ("AddTensor", "IndexCopy") for suffix in ("", "_", "Out")},
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_list_is_classified_as_the_manual_says(name: str) -> None:
    text, kinds, kernels = KINDS[name]
    found = registrations(text)
    assert [r.op for r in found] == re.findall(r"func: (\S+)", text)
    assert {" ".join(filter(None, [r.kind.value, r.form and r.form.value])) for r in found} == kinds
    assert {f"{r.cpp_namespace}::{r.kernel}" for r in found} == kernels
    assert {r.dispatch_key for r in found} == {"PrivateUse1"}


@pytest.mark.parametrize("name", KINDS)
def test_what_the_manual_prints_is_not_warned_about(name: str) -> None:
    text = KINDS[name][0]
    entries, diagnostics = specs(text)
    found, _ = classified(text)
    warn_redundant(entries, found, upstream(), KernelIndex(), MUSA, None, diagnostics)
    assert messages(diagnostics) == ""


@pytest.mark.parametrize("text", [NONZERO, VIEW_AS_REAL, UNSTRUCTURED_ADD])
def test_structured_false_may_be_written_where_it_is_so_anyway(text: str) -> None:
    """`structured` is left out for what is unstructured upstream, but may be false explicitly."""
    explicit = re.sub(r"(- func: (?:nonzero|view_as_real)\n)", r"\1  structured: false\n", text)
    assert rendered(explicit).items() >= {k: v for k, v in rendered(text).items() if k != "op_table.json"}.items()


def test_none_overrides_emit_what_leaving_them_out_does() -> None:
    plain = re.sub(r"  \w+: none\n", "", NONE_OVERRIDES)
    assert plain.count("none") == 0 and NONE_OVERRIDES.count("none") == 6
    ours, theirs = rendered(NONE_OVERRIDES), rendered(plain)
    assert {k for k in ours if ours[k] != theirs[k]} <= {"op_table.json"}  # which has line numbers


REFUSED = {
    UPSTREAM_TRIL: {"unknown dispatch key 'CUDA'"},
    UPSTREAM_NONZERO: {
        "unknown dispatch key 'CUDA'",
        "'nonzero' is PyTorch's operator: its kernel for CPU is PyTorch's, too",
    },
    UPSTREAM_VIEW_AS_REAL: {
        "unknown dispatch key 'CUDA'",
        "unknown dispatch key 'MPS'",
        "'view_as_real' is PyTorch's operator: its kernel for CPU is PyTorch's, too",
        "'view_as_real' is PyTorch's operator: its kernel for Meta is PyTorch's, too",
    },
}


@pytest.mark.parametrize("text", REFUSED)
def test_upstreams_own_declarations_are_refused_key_by_key(text: str) -> None:
    """Pasted from native_functions.yaml they name kernels that are PyTorch's, in schemas of the manual's release."""
    said = {item.message for item in classified(text)[1].errors}
    assert {message for message in said if "the schema of" not in message} == REFUSED[text]


@pytest.mark.parametrize("schema", re.findall(r"func: (.*)", UPSTREAM_TRIL + UPSTREAM_NONZERO + UPSTREAM_VIEW_AS_REAL))
def test_a_whole_schema_after_func_is_compared_with_this_release(schema: str) -> None:
    """The note that the name alone will do; a schema that is written all the same must be the installed one."""
    name = schema.partition("(")[0]
    text = f"- func: {schema}\n  dispatch: {{PrivateUse1: K}}\n"
    if name in ("tril", "tril_"):
        text += "- func: tril.out\n  dispatch: {PrivateUse1: MusaTril}\n"
    said = messages(classified(text)[1])
    if str(upstream().functions[name].func) == schema:
        assert said == ""
    else:
        assert f"the schema of '{name}' is not the one of PyTorch" in said and "expected: " in said


# ---- rules that the text states

RULES = {
    "an unstructured group names a kernel for every overload": (
        UNSTRUCTURED_ADD.replace(
            "- func: add_.Tensor\n  dispatch:\n    PrivateUse1: AddTensor_\n", "- func: add_.Tensor\n"
        ),
        "'add_.Tensor' needs a kernel for PrivateUse1: its out overload says 'structured: false'",
    ),
    "an overload that does not delegate names a kernel": (
        LEGACY_META.replace("- func: tril_\n", "- func: tril_\n  structured_delegate: none\n"),
        "'tril_' needs a kernel for PrivateUse1: it says that it does not follow its out overload",
    ),
    "structured_inherits belongs to the out overload": (
        LEGACY_META.replace("- func: tril_\n", "- func: tril_\n  structured_inherits: MyMetaBase\n"),
        "'structured_inherits' belongs to the out overload 'tril.out'",
    ),
    "precomputed belongs to the out overload": (
        LEGACY_META.replace("- func: tril\n", "- func: tril\n  precomputed: [diagonal -> int var]\n"),
        "'precomputed' belongs to the out overload 'tril.out'",
    ),
    "an unstructured operator names a kernel": (
        "- func: nonzero\n",
        "'nonzero' needs a kernel for PrivateUse1: it is not structured",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_what_is_not_set_right_is_an_error(name: str) -> None:
    text, expected = RULES[name]
    assert [item.message for item in classified(text)[1].errors] == [expected]


def test_the_other_keys_of_the_backend_are_always_unstructured() -> None:
    (found,) = registrations("- func: add.Tensor\n  dispatch:\n    QuantizedPrivateUse1: QuantizedAdd\n")
    assert (found.dispatch_key, found.kind.value, found.kernel) == (
        "QuantizedPrivateUse1",
        "unstructured",
        "QuantizedAdd",
    )


# ---- what is generated. Compared token by token: the manual's line breaks are the printer's.


def tokens(text: str) -> str:
    return "".join(text.split())


META_WITH_OWN_BASE = """\
struct TORCH_API structured_tril : public at::musa::MyMetaBase {
void meta(const at::Tensor & self, int64_t diagonal);};
"""
META_WITH_PRECOMPUTED = """\
struct TORCH_API structured_tril : public at::musa::MyMetaBase {
template <bool VAR = false> struct TORCH_API precompute_out {
precompute_out<true> set_var(int64_t value) {
static_assert(VAR == false, "var already set");
precompute_out<true> ret; ret.var = value; return ret; }
int64_t var; };
using meta_return_ty = precompute_out<true>;
meta_return_ty meta(const at::Tensor & self, int64_t diagonal);};
"""
IMPL = """\
struct TORCH_API structured_MusaTril : public at::musa::structured_tril {
void impl(const at::Tensor & self, int64_t var, const at::Tensor & out);};
"""
OWN_BASE_ONLY = re.sub(r"  precomputed:\n.*\n", "", CUSTOMIZED)
PRECOMPUTED_ONLY = re.sub(r"  structured_inherits.*\n", "", CUSTOMIZED)


def test_meta_and_impl_classes_are_the_ones_that_the_manual_shows() -> None:
    assert tokens(META_WITH_OWN_BASE) in tokens(header(OWN_BASE_ONLY, "tril"))
    assert tokens(META_WITH_PRECOMPUTED) in tokens(header(CUSTOMIZED, "tril"))
    assert tokens(IMPL) in tokens(header(CUSTOMIZED, "tril"))
    # "or": precomputed alone makes a meta class, too, on upstream's base
    without_base = META_WITH_PRECOMPUTED.replace("at::musa::MyMetaBase", "at::impl::MetaBase")
    assert tokens(without_base) in tokens(header(PRECOMPUTED_ONLY, "tril"))
    # LegacyMeta: the implementation is ours, in namespace at::musa, and derives from PyTorch's meta class
    legacy_meta = IMPL.replace("at::musa::structured_tril", "at::meta::structured_tril").replace("var", "diagonal")
    assert tokens(legacy_meta) in tokens(header(LEGACY_META, "tril"))
    assert "structured_tril {" not in header(LEGACY_META, "tril").replace("at::meta::structured_tril {", "")


@pytest.mark.parametrize(
    ("text", "root", "impl"),
    [
        (LEGACY, "lerp", "at::native::structured_lerp_Scalar"),
        (LEGACY, "lerp", "at::native::structured_lerp_Tensor"),
        (LEGACY_META, "tril", "at::musa::structured_MusaTril"),
        (CUSTOMIZED, "tril", "at::musa::structured_MusaTril"),
    ],
)
def test_three_classes_derive_from_the_impl_class_and_call_meta_then_impl(text: str, root: str, impl: str) -> None:
    """Steps 3 to 6: functional, in-place and out class of one implementation; the operators make one and call both."""
    source = shard(text, root)
    name = impl.rpartition("::")[2]
    for variant in ("functional", "inplace", "out"):
        assert f"struct {name}_{variant} final : public {impl} {{" in source
        body = source[source.index(f"{name}_{variant} op") :]
        assert 0 < body.index("op.meta(") < body.index("op.impl(") < body.index("}")


def test_an_unstructured_registration_calls_the_function_bound_to_it() -> None:
    source = shard(UNSTRUCTURED_ADD, "add")
    for kernel in ("AddTensor", "AddTensor_", "AddTensorOut"):
        assert f"return at::musa::{kernel}(self, other, alpha" in source
    assert "struct structured_" not in source
    assert "return at::native::view_as_real(self);" in shard(VIEW_AS_REAL, "view_as_real")
    assert "return at::musa::Nonzero(self);" in shard(NONZERO, "nonzero")


INTERFACES = """\
Tensor tril(const Tensor&, int64_t); // functional
Tensor& tril_(Tensor&, int64_t); // inplace
Tensor& tril_out(const Tensor&, int64_t, Tensor&); // out
"""


def test_functions_have_the_interfaces_that_the_manual_lists() -> None:
    text = "".join(
        f"- func: {op}\n  dispatch: {{PrivateUse1: {k}}}\n" for op, k in [("tril", "tril"), ("tril_", "tril_")]
    )
    text += "- func: tril.out\n  structured: false\n  dispatch: {PrivateUse1: tril_out}\n"
    declared = re.findall(r"TORCH_API (.*;)", header(text, "tril"))
    printed = [line.partition(" //")[0] for line in INTERFACES.splitlines()]
    assert sorted(map(canonical_signature, declared), key=str) == sorted(map(canonical_signature, printed), key=str)


# ---- kernels, as printed

LERP = """\
// lerp.Tensor group MUSA kernel
void lerp_tensor_kernel(at::TensorIteratorBase& iter) {......}

// lerp.Scalar group MUSA kernel
void lerp_scalar_kernel(at::TensorIteratorBase& iter, const c10::Scalar& weight) {
......
}

// lerp.Tensor group stub 注册
REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel);
// lerp.Scalar group stub 注册
REGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel);
"""
LEGACY_META_TRIL = """\
namespace at::musa {

TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor &result) { // 计算过程
}} // namespace at::musa
"""
CUSTOMIZED_TRIL = """\
namespace at::musa {

TORCH_PRECOMPUTE_META_FUNC(tril)(const Tensor& self, int64_t diagonal) { // 参数校验
// 计算临时变量
int64_t var = .... // 打包临时变量
return TORCH_PRECOMPUTE_META_FUNC(tril).set_var(var);}

TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t var, const Tensor &result) { // 计算实现
}} // namespace at::musa
"""
MUDNN_ADD = """\
#include <mudnn.h>

Tensor AddTensor(
const Tensor& self, const Tensor& other, Scalar const& alpha_scalar) {
// 检查 device
TORCH_CHECK(self.device().type() == kMUSA, "......");
TORCH_CHECK(self.device().type() == other.device().type(), "......");

// 检查 dtype
TORCH_CHECK(
self.scalar_type() == at::ScalarType::Float, "......");

......

// 添加 DeviceGuard
const c10::musa::MUSAGuard guard(self.device());

// 连续性转换
auto self_contig = self.contiguous();
auto other_contig = at::mul(other, alpha_scalar);
other_contig = other_contig.contiguous();

// 创建输出
auto output = at::empty(
infer_size_dimvector(self.sizes(), other.sizes()),
self.options());

// 创建 MUTensors
muTensor lhs = CreateMUTensor(self_contig);
muTensor rhs = CreateMUTensor(other_contig);
muTensor out = CreateMUTensor(output);

// 调用 MUDNN 接口
auto& h = GetMudnnHandle();
::musa::dnn::Binary op;
CHECK_MUDNN_STATUS(op.SetMode(::musa::dnn::Binary::Mode::ADD), "SetMode");
CHECK_MUDNN_STATUS(op.Run(h, out, lhs, rhs), "Run Add.Tensor");

return output;
}
"""
CPU_ADD = """\
Tensor AddTensor(
   const Tensor& self, const Tensor& other, Scalar const& alpha_scalar) {
   const auto cpu_dev = DeviceType::CPU;
   const auto musa_dev = self.device();
   auto cpu_self = at::empty(self.sizes(), self.options().device(cpu_dev));
   auto cpu_other = at::empty(other.sizes(), other.options().device(cpu_dev));
   return at::cpu::add(cpu_self, cpu_other).to(musa_dev);
}
"""
OTHER_ADDS = """\
Tensor& AddTensor_(Tensor& self, const Tensor& other, const Scalar& alpha) { return self; }
Tensor& AddTensorOut(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) { return out; }
"""


def inside(namespace: str, code: str) -> str:
    """What the manual takes for granted: its implementations are all in namespace at::musa."""
    includes = "".join(re.findall(r"#include .*\n", code))
    return f"{includes}namespace {namespace} {{\n{code.replace(includes, '')}\n}}\n"


SCANNED = {
    "lerp": (LEGACY, {"ported/Lerp.cu": inside("at::native", LERP)}),
    "LegacyMeta": (LEGACY_META, {"mudnn/Tril.cpp": LEGACY_META_TRIL}),
    "Customized": (CUSTOMIZED, {"mudnn/Tril.cpp": CUSTOMIZED_TRIL}),
    "muDNN": (UNSTRUCTURED_ADD, {"mudnn/Add.cpp": inside("at::musa", MUDNN_ADD + OTHER_ADDS)}),
    "CPU": (UNSTRUCTURED_ADD, {"cpu_fallback/Add.cpp": inside("at::musa", CPU_ADD + OTHER_ADDS)}),
}


@pytest.mark.parametrize("name", SCANNED)
def test_kernels_are_found_as_printed_and_fit_their_entries(name: str, tmp_path: Path) -> None:
    text, sources = SCANNED[name]
    kernels = index(tmp_path, sources)
    assert messages(checked(text, kernels)) == ""
    (source,) = sources
    found, diagnostics = classified(text, kernels)
    assert not diagnostics
    assert {(r.family, r.source) for r in found} == {(source.partition("/")[0], f"kernels/{source}")}


def test_legacy_needs_both_of_its_stubs(tmp_path: Path) -> None:
    half = LERP.replace("REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel);", "")
    said = messages(checked(LEGACY, index(tmp_path, {"ported/Lerp.cu": inside("at::native", half)})))
    assert said.count("error:") == 1 and "'lerp_kernel_tensor_weight' (<ATen/native/Lerp.h>)" in said


def test_the_projects_own_list_has_the_manuals_entries() -> None:
    """lerp, tril, nonzero and view_as_real are there as printed, with their kernels; triu is the Customized one."""
    listed = {spec.func: spec for spec in load_specs(ROOT / "yaml" / "musa_functions.yaml", Diagnostics())}
    for text in (LEGACY, LEGACY_META, NONZERO, VIEW_AS_REAL):
        for spec in specs(text)[0]:
            assert listed[spec.func].dispatch == spec.dispatch
            assert listed[spec.func].structured == spec.structured
    kernels = scan_kernels(ROOT)
    assert {"MusaTril", "MusaTriu"} <= kernels.impls.keys() and "Nonzero" in kernels.functions
    assert {"lerp_kernel_scalar_weight", "lerp_kernel_tensor_weight"} <= kernels.stubs.keys()


@pytest.mark.build
def test_kernels_compile_against_what_is_generated(tmp_path: Path) -> None:
    """The manual's elisions filled in, and `TORCH_PRECOMPUTE_META_FUNC(tril).set_var`, which it prints where the macro
    TORCH_PRECOMPUTE_STRUCT is meant. AddTensor on muDNN is compiled and run in tests/ops."""
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "a C++ compiler is needed, as for building the project"
    text = CUSTOMIZED + UNSTRUCTURED_ADD
    tril = CUSTOMIZED_TRIL.replace("int64_t var = ....", "int64_t var = diagonal;")
    tril = tril.replace("return TORCH_PRECOMPUTE_META_FUNC(tril).", "return TORCH_PRECOMPUTE_STRUCT(tril)().")
    for name, content in rendered(text).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    includes = [MUSA.umbrella_header, "ATen/ops/add_cpu_dispatch.h", "ATen/ops/empty.h", "ATen/native/Lerp.h"]
    lerp = LERP.replace("......", "").replace("REGISTER_DISPATCH", "REGISTER_PRIVATEUSE1_DISPATCH")
    unit = tmp_path / "manual.cpp"
    unit.write_text(
        "\n".join(
            [
                *(f"#include <{path}>" for path in includes),
                tril,
                inside("at::musa", CPU_ADD + OTHER_ADDS),
                inside("at::native", lerp),
            ]
        )
    )
    torch = find_torch().torch / "include"
    roots = [f"-I{tmp_path}/include", f"-I{ROOT}", f"-I{ROOT}/sdk/include"]
    systems = [f"-isystem{torch}", f"-isystem{torch}/torch/csrc/api/include"]
    flags = ["-fsyntax-only", "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", "-Wno-unused"]
    done = subprocess.run(
        [compiler, *flags, *roots, *systems, str(unit)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-6000:]
