# ruff: noqa: E501  (the goldens have the lines that torchgen prints)
"""The C++ of the less common rules. docs/rules.md says which test holds which rule; EXPECTTEST_ACCEPT=1 accepts."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from expecttest import TestCase
from generator_cases import classified, header, messages, rendered, shard, specs, squeeze, upstream

from opgen.backend import MUSA
from opgen.classify import classify
from opgen.emit import files
from opgen.kernels import KernelIndex


def registered(source: str) -> str:
    """The registration statements of a shard."""
    return "".join(line + "\n" for line in source.splitlines() if line.lstrip().startswith(("m.", "TORCH_LIBRARY")))


def wrappers(source: str) -> str:
    """The functions of a shard that the dispatcher calls."""
    lines = source[: source.index("// Register")].splitlines()
    starts = [i for i, line in enumerate(lines) if " wrapper_" in line and line.endswith(") {")]
    ends = [lines.index("}", start) for start in starts]
    return "".join("\n".join(lines[start : end + 1]) + "\n" for start, end in zip(starts, ends, strict=True))


def classes(source: str) -> str:
    """The structured classes of a shard, one line each."""
    return "".join(line + "\n" for line in source.splitlines() if line.startswith("struct "))


class TestStructured(TestCase):
    maxDiff = None

    def test_customized_with_own_base_without_kernel_name(self):
        text = "- func: cumsum\n- func: cumsum_\n- func: cumsum.out\n  structured_inherits: MyMetaBase"
        self.assertExpectedInline(
            squeeze(header(text, "cumsum")),
            """namespace at::musa { struct TORCH_API structured_cumsum : public at::musa::MyMetaBase { void meta(const at::Tensor & self, int64_t dim, ::std::optional<at::ScalarType> dtype); }; struct TORCH_API structured_cumsum_out : public at::musa::structured_cumsum { void impl(const at::Tensor & self, int64_t dim, ::std::optional<at::ScalarType> dtype, const at::Tensor & out); }; } // namespace at::musa""",
        )
        self.assertExpectedInline(
            classes(shard(text, "cumsum")),
            """\
struct structured_cumsum_out_functional final : public at::musa::structured_cumsum_out {
struct structured_cumsum_out_out final : public at::musa::structured_cumsum_out {
struct structured_cumsum_out_inplace final : public at::musa::structured_cumsum_out {
""",
        )

    def test_customized_with_precomputed_without_kernel_name(self):
        text = "- func: cumprod.out\n  precomputed: [dim -> int axis, int rank]"
        self.assertExpectedInline(
            squeeze(header(text, "cumprod")),
            """namespace at::musa { struct TORCH_API structured_cumprod : public at::impl::MetaBase { template <bool AXIS = false, bool RANK = false> struct TORCH_API precompute_out { precompute_out<true, RANK> set_axis(int64_t value) { static_assert(AXIS == false, "axis already set"); precompute_out<true, RANK> ret; ret.axis = value; ret.rank = this->rank; return ret; } precompute_out<AXIS, true> set_rank(int64_t value) { static_assert(RANK == false, "rank already set"); precompute_out<AXIS, true> ret; ret.axis = this->axis; ret.rank = value; return ret; } int64_t axis; int64_t rank; }; using meta_return_ty = precompute_out <true, true>; meta_return_ty meta(const at::Tensor & self, int64_t dim, ::std::optional<at::ScalarType> dtype); }; struct TORCH_API structured_cumprod_out : public at::musa::structured_cumprod { void impl(const at::Tensor & self, int64_t axis, ::std::optional<at::ScalarType> dtype, int64_t rank, const at::Tensor & out); }; } // namespace at::musa""",
        )

    def test_customized_with_both_without_kernel_name(self):
        text = "- func: _softmax.out\n  structured_inherits: MyMetaBase\n  precomputed: [dim -> int axis]"
        self.assertExpectedInline(
            squeeze(header(text, "_softmax")),
            """namespace at::musa { struct TORCH_API structured__softmax : public at::musa::MyMetaBase { template <bool AXIS = false> struct TORCH_API precompute_out { precompute_out<true> set_axis(int64_t value) { static_assert(AXIS == false, "axis already set"); precompute_out<true> ret; ret.axis = value; return ret; } int64_t axis; }; using meta_return_ty = precompute_out <true>; meta_return_ty meta(const at::Tensor & self, int64_t dim, bool half_to_float); }; struct TORCH_API structured_softmax_cuda_out : public at::musa::structured__softmax { void impl(const at::Tensor & self, int64_t axis, bool half_to_float, const at::Tensor & out); }; } // namespace at::musa""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "_softmax")),
            """\
at::Tensor & wrapper_PrivateUse1__softmax_out_out(const at::Tensor & self, int64_t dim, bool half_to_float, at::Tensor & out) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, out, "wrapper_PrivateUse1__softmax_out_out", "out");
  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1__softmax_out_out", "self");
structured_softmax_cuda_out_out op(out);
auto precompute = op.meta(self, dim, half_to_float);
(void)precompute;
op.impl(self, precompute.axis, half_to_float, op.maybe_get_output(0));
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
return out;
}
""",
        )

    def test_customized_without_what_upstream_precomputes(self):
        text = "- func: index_copy.out\n  precomputed: none\n  dispatch: {PrivateUse1: K}"
        self.assertExpectedInline(
            squeeze(header(text, "index_copy")),
            """namespace at::musa { struct TORCH_API structured_index_copy : public at::impl::MetaBase { void meta(const at::Tensor & self, int64_t dim, const at::Tensor & index, const at::Tensor & source); }; struct TORCH_API structured_K : public at::musa::structured_index_copy { void impl(const at::Tensor & self, int64_t dim, const at::Tensor & index, const at::Tensor & source, const at::Tensor & out); }; } // namespace at::musa""",
        )

    def test_one_overload_with_a_kernel_of_its_own(self):
        text = """\
            - func: tril
              dispatch: {PrivateUse1: TrilAlone}
            - func: tril_
            - func: tril.out
              dispatch: {PrivateUse1: MusaTril}
            """
        source = shard(text, "tril")
        self.assertExpectedInline(
            classes(source) + registered(source),
            """\
struct structured_MusaTril_out final : public at::musa::structured_MusaTril {
struct structured_MusaTril_inplace final : public at::musa::structured_MusaTril {
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril", wrapped(wrapper_PrivateUse1__tril));
  m.impl("tril.out", wrapped(wrapper_PrivateUse1_tril_out_out));
  m.impl("tril_", wrapped(wrapper_PrivateUse1_tril_));
""",
        )
        assert "return at::musa::TrilAlone(" in wrappers(source)

    def test_group_with_a_tensor_list_turned_unstructured(self):
        text = """\
            - func: cat
              dispatch: {PrivateUse1: Cat}
            - func: cat.out
              structured: false
              dispatch: {PrivateUse1: CatOut}
            """
        # The dispatcher insists on one C++ signature for all kernels of an operator: at::ITensorListRef.
        self.assertExpectedInline(
            header(text, "cat"),
            """\
namespace at::musa {

TORCH_API at::Tensor Cat(const at::ITensorListRef & tensors, int64_t dim);
TORCH_API at::Tensor & CatOut(const at::ITensorListRef & tensors, int64_t dim, at::Tensor & out);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "cat")),
            """\
at::Tensor wrapper_PrivateUse1__cat(const at::ITensorListRef & tensors, int64_t dim) {
    // No device check

  // DeviceGuard omitted
  return at::musa::Cat(tensors, dim);
}
at::Tensor & wrapper_PrivateUse1_out_cat_out(const at::ITensorListRef & tensors, int64_t dim, at::Tensor & out) {
    // No device check

  // DeviceGuard omitted
  return at::musa::CatOut(tensors, dim, out);
}
""",
        )

    def test_saying_not_inherited_in_full_changes_nothing(self):
        brief = """\
            - func: index_copy
              dispatch: {PrivateUse1: F}
            - func: index_copy_
              dispatch: {PrivateUse1: F_}
            - func: index_copy.out
              structured: false
              dispatch: {PrivateUse1: FOut}
            """
        full = """\
            - func: index_copy
              structured_delegate: none
              dispatch: {PrivateUse1: F}
            - func: index_copy_
              structured: false
              structured_delegate: none
              dispatch: {PrivateUse1: F_}
            - func: index_copy.out
              structured: false
              structured_inherits: none
              precomputed: none
              dispatch: {PrivateUse1: FOut}
            """
        self.assertExpectedInline(
            registered(shard(brief, "index_copy")),
            """\
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("index_copy", wrapped(wrapper_PrivateUse1__index_copy));
  m.impl("index_copy.out", wrapped(wrapper_PrivateUse1_out_index_copy_out));
  m.impl("index_copy_", wrapped(wrapper_PrivateUse1__index_copy_));
""",
        )
        cpp = [
            {name: text for name, text in rendered(t).items() if name != files.TABLE}
            for t in (textwrap.dedent(brief), textwrap.dedent(full))
        ]
        assert cpp[0] == cpp[1]

    def test_ufunc_group(self):
        text = "- func: add.Tensor\n- func: add_.Tensor\n- func: add.out\n  dispatch: {PrivateUse1: MusaAdd}"
        self.assertExpectedInline(
            header(text, "add"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaAdd : public at::meta::structured_add_Tensor {
  void impl(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha, const at::Tensor & out);
};

} // namespace at::musa
""",
        )
        source = shard(text, "add")
        self.assertExpectedInline(
            classes(source) + registered(source),
            """\
struct structured_MusaAdd_functional final : public at::musa::structured_MusaAdd {
struct structured_MusaAdd_out final : public at::musa::structured_MusaAdd {
struct structured_MusaAdd_inplace final : public at::musa::structured_MusaAdd {
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", wrapped(wrapper_PrivateUse1_add_Tensor));
  m.impl("add.out", wrapped(wrapper_PrivateUse1_add_out_out));
  m.impl("add_.Tensor", wrapped(wrapper_PrivateUse1_add__Tensor));
""",
        )
        # CUDA's implementation is itself generated from ufunc_inner_loop; there is nothing to reuse.
        _, diagnostics = classified("- func: add.out")
        self.assertExpectedInline(
            messages(diagnostics),
            """\
ops.yaml:1:9: error: 'add.out' names no kernel, but upstream's implementation 'ufunc_add_CUDA' is for CUDA only: the installed libtorch does not export it
    add `dispatch: {PrivateUse1: Kernel}` and define in namespace at::musa:
    TORCH_IMPL_FUNC(Kernel)(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha, const at::Tensor & out)""",
        )

    def test_two_outputs(self):
        text = "- func: aminmax\n- func: aminmax.out\n  dispatch: {PrivateUse1: MusaAminmax}"
        self.assertExpectedInline(
            header(text, "aminmax"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaAminmax : public at::meta::structured_aminmax {
  void impl(const at::Tensor & self, ::std::optional<int64_t> dim, bool keepdim, const at::Tensor & min, const at::Tensor & max);
};

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "aminmax")),
            """\
::std::tuple<at::Tensor,at::Tensor> wrapper_PrivateUse1_aminmax(const at::Tensor & self, ::std::optional<int64_t> dim, bool keepdim) {
  // No device check

structured_MusaAminmax_functional op;
op.meta(self, dim, keepdim);
op.impl(self, dim, keepdim, op.outputs_[0], op.outputs_[1]);
return std::make_tuple(std::move(op.outputs_[0]), std::move(op.outputs_[1]));
}
::std::tuple<at::Tensor &,at::Tensor &> wrapper_PrivateUse1_aminmax_out_out(const at::Tensor & self, ::std::optional<int64_t> dim, bool keepdim, at::Tensor & min, at::Tensor & max) {
  // No device check

structured_MusaAminmax_out op(min, max);
op.meta(self, dim, keepdim);
op.impl(self, dim, keepdim, op.maybe_get_output(0), op.maybe_get_output(1));
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
if (op.proxy_outputs_[1].has_value()) op.outputs_[1].get().copy_(*op.proxy_outputs_[1]);
return std::forward_as_tuple(min, max);
}
""",
        )

    def test_three_outputs(self):
        text = "- func: linalg_lu_factor_ex\n- func: linalg_lu_factor_ex.out\n  dispatch: {PrivateUse1: MusaLu}"
        self.assertExpectedInline(
            header(text, "linalg_lu_factor_ex"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaLu : public at::meta::structured_linalg_lu_factor_ex {
  void impl(const at::Tensor & A, bool pivot, bool check_errors, const at::Tensor & LU, const at::Tensor & pivots, const at::Tensor & info);
};

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "linalg_lu_factor_ex")),
            """\
::std::tuple<at::Tensor,at::Tensor,at::Tensor> wrapper_PrivateUse1_linalg_lu_factor_ex(const at::Tensor & A, bool pivot, bool check_errors) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, A, "wrapper_PrivateUse1_linalg_lu_factor_ex", "A");
structured_MusaLu_functional op;
op.meta(A, pivot, check_errors);
op.impl(A, pivot, check_errors, op.outputs_[0], op.outputs_[1], op.outputs_[2]);
return std::make_tuple(std::move(op.outputs_[0]), std::move(op.outputs_[1]), std::move(op.outputs_[2]));
}
::std::tuple<at::Tensor &,at::Tensor &,at::Tensor &> wrapper_PrivateUse1_linalg_lu_factor_ex_out_out(const at::Tensor & A, bool pivot, bool check_errors, at::Tensor & LU, at::Tensor & pivots, at::Tensor & info) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, LU, "wrapper_PrivateUse1_linalg_lu_factor_ex_out_out", "LU");
  c10::impl::check_and_update_common_device(common_device, pivots, "wrapper_PrivateUse1_linalg_lu_factor_ex_out_out", "pivots");
  c10::impl::check_and_update_common_device(common_device, info, "wrapper_PrivateUse1_linalg_lu_factor_ex_out_out", "info");
  c10::impl::check_and_update_common_device(common_device, A, "wrapper_PrivateUse1_linalg_lu_factor_ex_out_out", "A");
structured_MusaLu_out op(LU, pivots, info);
op.meta(A, pivot, check_errors);
op.impl(A, pivot, check_errors, op.maybe_get_output(0), op.maybe_get_output(1), op.maybe_get_output(2));
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
if (op.proxy_outputs_[1].has_value()) op.outputs_[1].get().copy_(*op.proxy_outputs_[1]);
if (op.proxy_outputs_[2].has_value()) op.outputs_[2].get().copy_(*op.proxy_outputs_[2]);
return std::forward_as_tuple(LU, pivots, info);
}
""",
        )

    def test_group_without_an_in_place_form(self):
        text = "- func: mm\n- func: mm.out\n  dispatch: {PrivateUse1: MusaMm}"
        source = shard(text, "mm")
        self.assertExpectedInline(
            classes(source) + registered(source),
            """\
struct structured_MusaMm_functional final : public at::musa::structured_MusaMm {
struct structured_MusaMm_out final : public at::musa::structured_MusaMm {
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mm", wrapped(wrapper_PrivateUse1_mm));
  m.impl("mm.out", wrapped(wrapper_PrivateUse1_mm_out_out));
""",
        )

    def test_upstream_precomputed(self):
        text = "- func: avg_pool2d\n- func: avg_pool2d.out\n  dispatch: {PrivateUse1: MusaAvgPool2d}"
        self.assertExpectedInline(
            header(text, "avg_pool2d"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaAvgPool2d : public at::meta::structured_avg_pool2d {
  void impl(const at::Tensor & self, int64_t kH, int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW, bool ceil_mode, bool count_include_pad, ::std::optional<int64_t> divisor_override, const at::Tensor & out);
};

} // namespace at::musa
""",
        )
        source = wrappers(shard(text, "avg_pool2d"))
        self.assertExpectedInline(
            "\n".join(line for line in source.splitlines() if "precompute" in line),
            """\
auto precompute = op.meta(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
(void)precompute;
op.impl(self, precompute.kH, precompute.kW, precompute.dH, precompute.dW, precompute.padH, precompute.padW, ceil_mode, count_include_pad, divisor_override, op.outputs_[0]);
auto precompute = op.meta(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
(void)precompute;
op.impl(self, precompute.kH, precompute.kW, precompute.dH, precompute.dW, precompute.padH, precompute.padW, ceil_mode, count_include_pad, divisor_override, op.maybe_get_output(0));""",
        )

    def test_legacy_beside_another_key(self):
        text = """\
            - func: asin
              dispatch: {SparsePrivateUse1: asin_sparse}
            - func: asin_
              dispatch: {SparsePrivateUse1: asin_sparse_}
            - func: asin.out
              dispatch: {SparsePrivateUse1: asin_sparse_out}
            """
        source = shard(text, "asin")
        self.assertExpectedInline(
            classes(source) + registered(source),
            """\
struct structured_asin_out_functional final : public at::native::structured_asin_out {
struct structured_asin_out_out final : public at::native::structured_asin_out {
struct structured_asin_out_inplace final : public at::native::structured_asin_out {
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("asin", wrapped(wrapper_PrivateUse1_asin));
  m.impl("asin.out", wrapped(wrapper_PrivateUse1_asin_out_out));
  m.impl("asin_", wrapped(wrapper_PrivateUse1_asin_));
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("asin", wrapped(wrapper_SparsePrivateUse1__asin));
  m.impl("asin.out", wrapped(wrapper_SparsePrivateUse1_out_asin_out));
  m.impl("asin_", wrapped(wrapper_SparsePrivateUse1__asin_));
""",
        )
        # ... unless the group's out overload says that it is not structured here, or is not listed
        for alone in (
            text.replace("asin.out\n", "asin.out\n              structured: false\n"),
            text[: text.rindex("- func")],
        ):
            assert "PrivateUse1, m" in registered(shard(alone, "asin"))
            assert "(aten, PrivateUse1, m)" not in registered(shard(alone, "asin"))


class TestArguments(TestCase):
    maxDiff = None

    def test_optionals(self):
        text = """\
            - func: clamp.out
              dispatch: {PrivateUse1: MusaClamp}
            - func: clamp.Tensor_out
              dispatch: {PrivateUse1: MusaClampTensor}
            - func: repeat_interleave.Tensor
              dispatch: {PrivateUse1: Repeat}
            - func: convolution_overrideable
              dispatch: {PrivateUse1: Convolution}
            """
        for root in ("clamp", "repeat_interleave", "convolution_overrideable"):
            with self.subTest(root):
                assert "optional" in header(text, root) or "OptionalTensorRef" in header(text, root)
        self.assertExpectedInline(
            header(text, "clamp") + header(text, "repeat_interleave") + header(text, "convolution_overrideable"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaClampTensor : public at::meta::structured_clamp_Tensor {
  void impl(const at::Tensor & self, at::OptionalTensorRef min, at::OptionalTensorRef max, const at::Tensor & out);
};

struct TORCH_API structured_MusaClamp : public at::meta::structured_clamp {
  void impl(const at::Tensor & self, at::OptionalScalarRef min, at::OptionalScalarRef max, const at::Tensor & out);
};

} // namespace at::musa
namespace at::musa {

TORCH_API at::Tensor Repeat(const at::Tensor & repeats, ::std::optional<int64_t> output_size);

} // namespace at::musa
namespace at::musa {

TORCH_API at::Tensor Convolution(const at::Tensor & input, const at::Tensor & weight, const ::std::optional<at::Tensor> & bias, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups);

} // namespace at::musa
""",
        )

    def test_layout_device_and_memory_format(self):
        text = "- func: tril_indices\n  dispatch: {PrivateUse1: TrilIndices}\n- func: empty.memory_format\n  device_guard: true\n  dispatch: {PrivateUse1: Empty}"
        self.assertExpectedInline(
            header(text, "tril_indices") + header(text, "empty"),
            """\
namespace at::musa {

TORCH_API at::Tensor TrilIndices(int64_t row, int64_t col, int64_t offset, ::std::optional<at::ScalarType> dtype, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<bool> pin_memory);

} // namespace at::musa
namespace at::musa {

TORCH_API at::Tensor Empty(at::IntArrayRef size, ::std::optional<at::ScalarType> dtype, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<bool> pin_memory, ::std::optional<at::MemoryFormat> memory_format);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "empty")),
            """\
at::Tensor wrapper_PrivateUse1_memory_format_empty(c10::SymIntArrayRef size, ::std::optional<at::ScalarType> dtype, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<bool> pin_memory, ::std::optional<at::MemoryFormat> memory_format) {
    // No device check

  const DeviceGuard device_guard(device_or_default(device));
  return at::musa::Empty(C10_AS_INTARRAYREF_SLOW(size), dtype, layout, device, pin_memory, memory_format);
}
""",
        )

    def test_storage(self):
        text = "- func: set_.source_Storage_storage_offset\n  dispatch: {PrivateUse1: SetStorage_}"
        self.assertExpectedInline(
            header(text, "set"),
            """\
namespace at::musa {

TORCH_API at::Tensor & SetStorage_(at::Tensor & self, at::Storage source, int64_t storage_offset, at::IntArrayRef size, at::IntArrayRef stride);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "set")),
            """\
at::Tensor & wrapper_PrivateUse1_source_Storage_storage_offset_set_(at::Tensor & self, at::Storage source, c10::SymInt storage_offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
    // No device check

  // DeviceGuard omitted
  return at::musa::SetStorage_(self, source, storage_offset.guard_int(__FILE__, __LINE__), C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}
""",
        )

    def test_generator(self):
        text = "- func: bernoulli_.float\n  dispatch: {PrivateUse1: Bernoulli_}\n- func: bernoulli.out\n  dispatch: {PrivateUse1: BernoulliOut}"
        self.assertExpectedInline(
            wrappers(shard(text, "bernoulli")),
            """\
at::Tensor & wrapper_PrivateUse1_out_bernoulli_out(const at::Tensor & self, ::std::optional<at::Generator> generator, at::Tensor & out) {
    // No device check

  // DeviceGuard omitted
  return at::musa::BernoulliOut(self, generator, out);
}
at::Tensor & wrapper_PrivateUse1_float_bernoulli_(at::Tensor & self, double p, ::std::optional<at::Generator> generator) {
    // No device check

  // DeviceGuard omitted
  return at::musa::Bernoulli_(self, p, generator);
}
""",
        )

    def test_symint(self):
        text = "- func: empty_strided\n  dispatch: {PrivateUse1: empty_strided_symint}"
        self.assertExpectedInline(
            wrappers(shard(text, "empty_strided")),
            """\
at::Tensor wrapper_PrivateUse1__empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, ::std::optional<at::ScalarType> dtype, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<bool> pin_memory) {
    // No device check

  // DeviceGuard omitted
  return at::musa::empty_strided_symint(size, stride, dtype, layout, device, pin_memory);
}
""",
        )

    def test_tensor_list_outside_structured_groups(self):
        text = "- func: _foreach_add.List\n  dispatch: {PrivateUse1: ForeachAdd}"
        self.assertExpectedInline(
            header(text, "_foreach_add"),
            """\
namespace at::musa {

TORCH_API ::std::vector<at::Tensor> ForeachAdd(at::TensorList self, at::TensorList other, const at::Scalar & alpha);

} // namespace at::musa
""",
        )


class TestKeys(TestCase):
    maxDiff = None

    def test_quantized(self):
        text = "- func: int_repr\n  dispatch: {QuantizedPrivateUse1: IntRepr}"
        source = shard(text, "int_repr")
        self.assertExpectedInline(
            header(text, "int_repr") + wrappers(source) + registered(source),
            """\
namespace at::musa {

TORCH_API at::Tensor IntRepr(const at::Tensor & self);

} // namespace at::musa
at::Tensor wrapper_QuantizedPrivateUse1__int_repr(const at::Tensor & self) {
    // No device check

  // DeviceGuard omitted
  return at::musa::IntRepr(self);
}
TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  m.impl("int_repr", wrapped(wrapper_QuantizedPrivateUse1__int_repr));
""",
        )

    def test_sparse(self):
        text = "- func: _coalesce\n  dispatch: {SparsePrivateUse1: Coalesce}\n- func: _nnz\n  dispatch: {SparsePrivateUse1: _nnz_sparse}"
        for root in ("_coalesce", "_nnz"):
            assert "SparsePrivateUse1" in shard(text, root)
        self.assertExpectedInline(
            wrappers(shard(text, "_coalesce")),
            """\
at::Tensor wrapper_SparsePrivateUse1___coalesce(const at::Tensor & self) {
    // No device check

  // DeviceGuard omitted
  return at::musa::Coalesce(self);
}
""",
        )
        self.assertExpectedInline(
            wrappers(shard(text, "_nnz")) + registered(shard(text, "_nnz")),
            """\
int64_t wrapper_SparsePrivateUse1___nnz(const at::Tensor & self) {
    // No device check

  // DeviceGuard omitted
  return at::native::_nnz_sparse(self);
}
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_nnz", wrapped(wrapper_SparsePrivateUse1___nnz));
""",
        )

    def test_sparse_csr(self):
        text = "- func: crow_indices\n  dispatch: {SparseCsrPrivateUse1: crow_indices_sparse_csr}"
        source = shard(text, "crow_indices")
        self.assertExpectedInline(
            wrappers(source) + registered(source),
            """\
at::Tensor wrapper_SparseCsrPrivateUse1__crow_indices(const at::Tensor & self) {
    // No device check

  // DeviceGuard omitted
  return at::native::crow_indices_sparse_csr(self);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("crow_indices", wrapped(wrapper_SparseCsrPrivateUse1__crow_indices));
""",
        )

    def test_nested(self):
        text = "- func: cat\n  dispatch: {NestedTensorPrivateUse1: cat_nested}"
        source = shard(text, "cat")
        self.assertExpectedInline(
            wrappers(source) + registered(source),
            """\
at::Tensor wrapper_NestedTensorPrivateUse1__cat(const at::ITensorListRef & tensors, int64_t dim) {
  std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, tensors, "wrapper_NestedTensorPrivateUse1__cat", "tensors");

  const OptionalDeviceGuard device_guard(device_of(tensors));
  return at::native::cat_nested(tensors, dim);
}
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("cat", wrapped(wrapper_NestedTensorPrivateUse1__cat));
""",
        )

    def test_autograd(self):
        text = "- func: round\n  dispatch: {AutogradPrivateUse1: RoundStraightThrough}"
        source = shard(text, "round")
        self.assertExpectedInline(
            header(text, "round") + wrappers(source) + registered(source),
            """\
namespace at::musa {

TORCH_API at::Tensor RoundStraightThrough(const at::Tensor & self);

} // namespace at::musa
at::Tensor wrapper_AutogradPrivateUse1__round(const at::Tensor & self) {
    // No device check

  // DeviceGuard omitted
  return at::musa::RoundStraightThrough(self);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("round", wrapped(wrapper_AutogradPrivateUse1__round));
""",
        )

    def test_several_keys_with_one_kernel(self):
        text = """\
            - func: erfc
              dispatch:
                SparsePrivateUse1, SparseCsrPrivateUse1: ErfcSparse
                QuantizedPrivateUse1, NestedTensorPrivateUse1: cpu_fallback
            """
        self.assertExpectedInline(
            header(text, "erfc"),
            """\
namespace at::musa {

TORCH_API at::Tensor ErfcSparse(const at::Tensor & self);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            registered(shard(text, "erfc")),
            """\
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("erfc", torch::CppFunction::makeFromBoxedFunction<&at::musa::cpu_fallback>());
TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  m.impl("erfc", torch::CppFunction::makeFromBoxedFunction<&at::musa::cpu_fallback>());
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("erfc", wrapped(wrapper_SparseCsrPrivateUse1__erfc));
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("erfc", wrapped(wrapper_SparsePrivateUse1__erfc));
""",
        )


class TestNewOperators(TestCase):
    maxDiff = None

    def test_in_place_with_lists_and_optionals(self):
        text = """\
            - func: rules::scale_(Tensor(a!) self, Tensor[] by, float? factor=None, *, bool negate=False) -> Tensor(a!)
              dispatch: {PrivateUse1: Scale_, Meta: ScaleMeta_}
            """
        source = shard(text, "scale")
        self.assertExpectedInline(
            header(text, "scale") + registered(source),
            """\
namespace at::musa {

TORCH_API at::Tensor & ScaleMeta_(at::Tensor & self, at::TensorList by, ::std::optional<double> factor, bool negate);
TORCH_API at::Tensor & Scale_(at::Tensor & self, at::TensorList by, ::std::optional<double> factor, bool negate);

} // namespace at::musa
TORCH_LIBRARY_FRAGMENT(rules, m) {
  m.def("scale_(Tensor(a!) self, Tensor[] by, float? factor=None, *, bool negate=False) -> Tensor(a!)", {at::Tag::inplace});
TORCH_LIBRARY_IMPL(rules, PrivateUse1, m) {
  m.impl("scale_", wrapped(wrapper_PrivateUse1__scale_));
TORCH_LIBRARY_IMPL(rules, Meta, m) {
  m.impl("scale_", wrapped(wrapper_Meta__scale_));
""",
        )

    def test_several_results_out(self):
        text = """\
            - func: rules::pair.out(Tensor self, int[2] shift=1, *, Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))
              device_check: ExactSame
              device_guard: true
              dispatch: {PrivateUse1: PairOut}
            """
        source = shard(text, "pair")
        self.assertExpectedInline(
            header(text, "pair") + wrappers(source) + registered(source),
            """\
namespace at::musa {

TORCH_API ::std::tuple<at::Tensor &,at::Tensor &> PairOut(const at::Tensor & self, at::IntArrayRef shift, at::Tensor & first, at::Tensor & second);

} // namespace at::musa
::std::tuple<at::Tensor &,at::Tensor &> wrapper_PrivateUse1_out_pair_out(const at::Tensor & self, at::IntArrayRef shift, at::Tensor & first, at::Tensor & second) {
  std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, first, "wrapper_PrivateUse1_out_pair_out", "first");
  c10::impl::check_and_update_common_device(common_device, second, "wrapper_PrivateUse1_out_pair_out", "second");
  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1_out_pair_out", "self");

  const OptionalDeviceGuard device_guard(device_of(self));
  return at::musa::PairOut(self, shift, first, second);
}
TORCH_LIBRARY_FRAGMENT(rules, m) {
  m.def("pair.out(Tensor self, int[2] shift=1, *, Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))", {at::Tag::out});
TORCH_LIBRARY_IMPL(rules, PrivateUse1, m) {
  m.impl("pair.out", wrapped(wrapper_PrivateUse1_out_pair_out));
""",
        )

    def test_every_other_kind_of_argument(self):
        text = """\
            - func: rules::describe(Tensor? self, Scalar[] limits, ScalarType? dtype=None, str mode="plain") -> (Tensor, int)
              tags: pt2_compliant_tag
              dispatch: {CompositeExplicitAutograd: Describe}
            - func: rules::grown(Tensor self, SymInt[] size, Layout? layout=None, Device? device=None, Generator? generator=None) -> Tensor
              tags: nondeterministic_seeded
              dispatch: {PrivateUse1: Grown_symint}
            """
        self.assertExpectedInline(
            header(text, "describe") + registered(shard(text, "describe")),
            """\
namespace at::musa {

TORCH_API ::std::tuple<at::Tensor,int64_t> Describe(const ::std::optional<at::Tensor> & self, at::ArrayRef<at::Scalar> limits, ::std::optional<at::ScalarType> dtype, c10::string_view mode);

} // namespace at::musa
TORCH_LIBRARY_FRAGMENT(rules, m) {
  m.def("describe(Tensor? self, Scalar[] limits, ScalarType? dtype=None, str mode=\\"plain\\") -> (Tensor, int)", {at::Tag::pt2_compliant_tag});
TORCH_LIBRARY_IMPL(rules, CompositeExplicitAutograd, m) {
  m.impl("describe", wrapped(wrapper_CompositeExplicitAutograd__describe));
""",
        )
        self.assertExpectedInline(
            header(text, "grown") + registered(shard(text, "grown")),
            """\
namespace at::musa {

TORCH_API at::Tensor Grown_symint(const at::Tensor & self, c10::SymIntArrayRef size, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<at::Generator> generator);

} // namespace at::musa
TORCH_LIBRARY_FRAGMENT(rules, m) {
  m.def("grown(Tensor self, SymInt[] size, Layout? layout=None, Device? device=None, Generator? generator=None) -> Tensor", {at::Tag::nondeterministic_seeded});
TORCH_LIBRARY_IMPL(rules, PrivateUse1, m) {
  m.impl("grown", wrapped(wrapper_PrivateUse1__grown));
""",
        )

    def test_through_the_cpu(self):
        text = "- func: rules::on_cpu(Tensor self) -> Tensor\n  dispatch: {CPU: OnCpu, PrivateUse1: cpu_fallback}"
        self.assertExpectedInline(
            registered(shard(text, "on_cpu")),
            """\
TORCH_LIBRARY_FRAGMENT(rules, m) {
  m.def("on_cpu(Tensor self) -> Tensor");
TORCH_LIBRARY_IMPL(rules, PrivateUse1, m) {
  m.impl("on_cpu", torch::CppFunction::makeFromBoxedFunction<&at::musa::cpu_fallback>());
TORCH_LIBRARY_IMPL(rules, CPU, m) {
  m.impl("on_cpu", wrapped(wrapper_CPU__on_cpu));
""",
        )


class TestReleases(TestCase):
    maxDiff = None

    def test_entries_exist_where_their_specifier_says(self):
        text = """\
            - func: trace
              torch: "<2.11"
              dispatch: {PrivateUse1: TraceOfThePast}
            - func: trace
              torch: ">=2.11,!=2.14.*"
              dispatch: {PrivateUse1: Trace}
            - func: dot
              torch: ">=2.15"
              dispatch: {PrivateUse1: Dot}
            """
        lines = []
        for version in ("2.9.1", "2.10.0", "2.11.0+cpu", "2.13.0", "2.14.1", "2.15.0a0+git1234", "2.15.0"):
            entries, diagnostics = specs(text)
            pretended = replace(upstream(), torch_version=version)
            found = classify(entries, pretended, KernelIndex(), MUSA, diagnostics)
            assert not diagnostics.items, messages(diagnostics)
            sources = files.render(found, version, MUSA)
            statements = registered("".join(sources[files.shard_name(n, MUSA)] for n in range(MUSA.shard_count)))
            declared = "".join(text for name, text in sorted(sources.items()) if name.endswith("_native.h"))
            kernels = [k for k in ("TraceOfThePast(", "Trace(", "Dot(") if f" {k}" in declared]
            lines.append(f"{version}: {squeeze(statements)} {kernels}\n")
        self.assertExpectedInline(
            "".join(lines),
            """\
2.9.1: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("trace", wrapped(wrapper_PrivateUse1__trace)); ['TraceOfThePast(']
2.10.0: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("trace", wrapped(wrapper_PrivateUse1__trace)); ['TraceOfThePast(']
2.11.0+cpu: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("trace", wrapped(wrapper_PrivateUse1__trace)); ['Trace(']
2.13.0: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("trace", wrapped(wrapper_PrivateUse1__trace)); ['Trace(']
2.14.1:  []
2.15.0a0+git1234: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("trace", wrapped(wrapper_PrivateUse1__trace)); TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("dot", wrapped(wrapper_PrivateUse1__dot)); ['Trace(', 'Dot(']
2.15.0: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("trace", wrapped(wrapper_PrivateUse1__trace)); TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("dot", wrapped(wrapper_PrivateUse1__dot)); ['Trace(', 'Dot(']
""",
        )
