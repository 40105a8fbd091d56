# ruff: noqa: E501  (the goldens have the lines that torchgen prints)
"""The C++ that each kind of entry becomes. Run with EXPECTTEST_ACCEPT=1 to accept a deliberate change."""

from __future__ import annotations

import json

from expecttest import TestCase
from generator_cases import header, outline, registrations, rendered, shard, squeeze, upstream

from opgen.backend import MUSA
from opgen.emit import files

TRIL = """\
- func: tril
- func: tril_
- func: tril.out
  dispatch: {PrivateUse1: MusaTril}
"""


class TestGolden(TestCase):
    maxDiff = None

    def test_legacy(self):
        text = "- func: lerp.Scalar_out"
        self.assertExpectedInline(
            outline(shard(text, "lerp")),
            """\
#include <ATen/ops/lerp_native.h>
#include <torch_musa/RegistrationHelpers.h>

namespace at::musa::registration {
namespace {

struct structured_lerp_Scalar_out final : public at::native::structured_lerp_Scalar {
    structured_lerp_Scalar_out(Tensor& out0) : outputs_{ std::ref(out0) } {}

    void set_output_strided(...)
    void set_output_raw_strided(...)
    const Tensor& maybe_get_output(int64_t output_idx) override {
      return proxy_outputs_[output_idx].has_value() ? *proxy_outputs_[output_idx] : outputs_[output_idx].get();

    }
    std::array<std::reference_wrapper<Tensor>, 1> outputs_;
    std::array<::std::optional<Tensor>, 1> proxy_outputs_;
    c10::OptionalDeviceGuard guard_;
};

at::Tensor & wrapper_PrivateUse1_lerp_out_Scalar_out(const at::Tensor & self, const at::Tensor & end, const at::Scalar & weight, at::Tensor & out) {
  // No device check

structured_lerp_Scalar_out op(out);
op.meta(self, end, weight);
op.impl(self, end, weight, op.maybe_get_output(0));
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
return out;
}

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("lerp.Scalar_out", wrapped(wrapper_PrivateUse1_lerp_out_Scalar_out));
}

} // namespace at::musa::registration
""",
        )
        # Upstream declares everything a Legacy entry uses.
        assert "include/torch_musa/ops/lerp_native.h" not in rendered(text)

    def test_legacy_meta(self):
        self.assertExpectedInline(
            header(TRIL, "tril"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaTril : public at::meta::structured_tril {
  void impl(const at::Tensor & self, int64_t diagonal, const at::Tensor & out);
};

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            outline(shard(TRIL, "tril")),
            """\
#include <torch_musa/RegistrationHelpers.h>
#include <torch_musa/ops/tril_native.h>

namespace at::musa::registration {
namespace {

struct structured_MusaTril_functional final : public at::musa::structured_MusaTril {

    void set_output_strided(...)
    void set_output_raw_strided(...)
    const Tensor& maybe_get_output(int64_t output_idx) override {
      return outputs_[output_idx];

    }
    std::array<Tensor, 1> outputs_;
    c10::OptionalDeviceGuard guard_;
};

at::Tensor wrapper_PrivateUse1_tril(const at::Tensor & self, int64_t diagonal) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1_tril", "self");
structured_MusaTril_functional op;
op.meta(self, diagonal);
op.impl(self, diagonal, op.outputs_[0]);
return std::move(op.outputs_[0]);
}

struct structured_MusaTril_out final : public at::musa::structured_MusaTril {
    structured_MusaTril_out(Tensor& out0) : outputs_{ std::ref(out0) } {}

    void set_output_strided(...)
    void set_output_raw_strided(...)
    const Tensor& maybe_get_output(int64_t output_idx) override {
      return proxy_outputs_[output_idx].has_value() ? *proxy_outputs_[output_idx] : outputs_[output_idx].get();

    }
    std::array<std::reference_wrapper<Tensor>, 1> outputs_;
    std::array<::std::optional<Tensor>, 1> proxy_outputs_;
    c10::OptionalDeviceGuard guard_;
};

at::Tensor & wrapper_PrivateUse1_tril_out_out(const at::Tensor & self, int64_t diagonal, at::Tensor & out) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, out, "wrapper_PrivateUse1_tril_out_out", "out");
  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1_tril_out_out", "self");
structured_MusaTril_out op(out);
op.meta(self, diagonal);
op.impl(self, diagonal, op.maybe_get_output(0));
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
return out;
}

struct structured_MusaTril_inplace final : public at::musa::structured_MusaTril {
    structured_MusaTril_inplace(Tensor& self) : outputs_{std::ref(self)} {}

    void set_output_strided(...)
    void set_output_raw_strided(...)
    const Tensor& maybe_get_output(int64_t output_idx) override {
      return proxy_outputs_[output_idx].has_value() ? *proxy_outputs_[output_idx] : outputs_[output_idx].get();

    }
    std::array<std::reference_wrapper<Tensor>, 1> outputs_;
    std::array<::std::optional<Tensor>, 1> proxy_outputs_;
    c10::OptionalDeviceGuard guard_;
};

at::Tensor & wrapper_PrivateUse1_tril_(at::Tensor & self, int64_t diagonal) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1_tril_", "self");
structured_MusaTril_inplace op(self);
op.meta(self, diagonal);
op.impl(self, diagonal, op.outputs_[0]);
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
return self;
}

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril", wrapped(wrapper_PrivateUse1_tril));
  m.impl("tril.out", wrapped(wrapper_PrivateUse1_tril_out_out));
  m.impl("tril_", wrapped(wrapper_PrivateUse1_tril_));
}

} // namespace at::musa::registration
""",
        )

    def test_structured_class_guards_the_device(self):
        source = shard("- func: tril.out\n  dispatch: {PrivateUse1: MusaTril}", "tril")
        # Before and after these lines releases differ in how they pass the names of dimensions.
        start = source.index("        auto current_device")
        self.assertExpectedInline(
            source[start : source.index("        auto maybe_proxy")],
            """\
        auto current_device = guard_.current_device();
        if (C10_UNLIKELY(current_device.has_value())) {
          TORCH_INTERNAL_ASSERT(*current_device == options.device(),
            "structured kernels don't support multi-device outputs");
        } else {
          guard_.reset_device(options.device());
        }

        const auto& out = outputs_[output_idx].get();
        resize_out(out, sizes, strides, options);

""",
        )

    def test_customized_with_base(self):
        text = "- func: tril.out\n  structured_inherits: MyMetaBase\n  dispatch: {PrivateUse1: MusaTril}"
        self.assertExpectedInline(
            header(text, "tril"),
            """\
namespace at::musa {

struct TORCH_API structured_tril : public at::musa::MyMetaBase {

    void meta(const at::Tensor & self, int64_t diagonal);
};

struct TORCH_API structured_MusaTril : public at::musa::structured_tril {
  void impl(const at::Tensor & self, int64_t diagonal, const at::Tensor & out);
};

} // namespace at::musa
""",
        )
        assert f"#include <{MUSA.meta_bases_header}>" in rendered(text)["include/torch_musa/ops/tril_native.h"]
        # An own base sees every output: it may want to allocate or to count them.
        assert "at::musa::structured_MusaTril::set_output_raw_strided(output_idx" in shard(text, "tril")

    def test_customized_with_precomputed(self):
        text = "- func: tril.out\n  precomputed: [diagonal -> int var]\n  dispatch: {PrivateUse1: MusaTril}"
        self.assertExpectedInline(
            squeeze(header(text, "tril")),
            """namespace at::musa { struct TORCH_API structured_tril : public at::impl::MetaBase { template <bool VAR = false> struct TORCH_API precompute_out { precompute_out<true> set_var(int64_t value) { static_assert(VAR == false, "var already set"); precompute_out<true> ret; ret.var = value; return ret; } int64_t var; }; using meta_return_ty = precompute_out <true>; meta_return_ty meta(const at::Tensor & self, int64_t diagonal); }; struct TORCH_API structured_MusaTril : public at::musa::structured_tril { void impl(const at::Tensor & self, int64_t var, const at::Tensor & out); }; } // namespace at::musa""",
        )
        source = shard(text, "tril")
        self.assertExpectedInline(
            source[source.index("at::Tensor & wrapper") : source.index("} // namespace")],
            """\
at::Tensor & wrapper_PrivateUse1_tril_out_out(const at::Tensor & self, int64_t diagonal, at::Tensor & out) {
std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, out, "wrapper_PrivateUse1_tril_out_out", "out");
  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1_tril_out_out", "self");
structured_MusaTril_out op(out);
auto precompute = op.meta(self, diagonal);
(void)precompute;
op.impl(self, precompute.var, op.maybe_get_output(0));
if (op.proxy_outputs_[0].has_value()) op.outputs_[0].get().copy_(*op.proxy_outputs_[0]);
return out;
}

""",
        )

    def test_customized_as_the_manual_prints_it(self):
        text = """\
            - func: tril
            - func: tril_
            - func: tril.out
              structured_inherits: MyMetaBase
              precomputed:
                - diagonal -> int var
              dispatch:
                PrivateUse1: MusaTril
            """
        printed = """\
            struct TORCH_API structured_tril : public at::musa::MyMetaBase {
              template <bool VAR = false>
              struct TORCH_API precompute_out {
                precompute_out<true> set_var(int64_t value) {
                  static_assert(VAR == false, "var already set");
                  precompute_out<true> ret;
                  ret.var = value;
                  return ret;
                }
                int64_t var;
              };
              using meta_return_ty = precompute_out <true>;
              meta_return_ty meta(const at::Tensor & self, int64_t diagonal);
            };
            struct TORCH_API structured_MusaTril : public at::musa::structured_tril {
              void impl(const at::Tensor & self, int64_t var, const at::Tensor & out);
            };
            """
        assert squeeze(printed) in squeeze(header(text, "tril"))

    def test_customized_without_a_kernel_name(self):
        text = "- func: tril.out\n  structured_inherits: MyMetaBase"
        assert "struct TORCH_API structured_tril_cuda : public at::musa::structured_tril {" in header(text, "tril")

    def test_unstructured_group(self):
        text = """\
            - func: add.Tensor
              dispatch: {PrivateUse1: AddTensor}
            - func: add_.Tensor
              dispatch: {PrivateUse1: AddTensor_}
            - func: add.out
              structured: false
              dispatch: {PrivateUse1: AddTensorOut}
            """
        self.assertExpectedInline(
            header(text, "add"),
            """\
namespace at::musa {

TORCH_API at::Tensor AddTensor(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha);
TORCH_API at::Tensor & AddTensorOut(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha, at::Tensor & out);
TORCH_API at::Tensor & AddTensor_(at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            shard(text, "add"),
            """\
#include <torch_musa/RegistrationHelpers.h>
#include <torch_musa/ops/add_native.h>

namespace at::musa::registration {
namespace {

namespace {

at::Tensor wrapper_PrivateUse1_Tensor_add(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha) {
    // No device check

  // DeviceGuard omitted
  return at::musa::AddTensor(self, other, alpha);
}

} // anonymous namespace

namespace {

at::Tensor & wrapper_PrivateUse1_out_add_out(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha, at::Tensor & out) {
    // No device check

  // DeviceGuard omitted
  return at::musa::AddTensorOut(self, other, alpha, out);
}

} // anonymous namespace

namespace {

at::Tensor & wrapper_PrivateUse1_Tensor_add_(at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha) {
    // No device check

  // DeviceGuard omitted
  return at::musa::AddTensor_(self, other, alpha);
}

} // anonymous namespace

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", wrapped(wrapper_PrivateUse1_Tensor_add));
  m.impl("add.out", wrapped(wrapper_PrivateUse1_out_add_out));
  m.impl("add_.Tensor", wrapped(wrapper_PrivateUse1_Tensor_add_));
}

} // namespace at::musa::registration
""",
        )

    def test_reused(self):
        text = "- func: view_as_real\n  dispatch: {PrivateUse1: view_as_real}"
        self.assertExpectedInline(
            shard(text, "view_as_real"),
            """\
#include <ATen/ops/view_as_real_native.h>
#include <torch_musa/RegistrationHelpers.h>

namespace at::musa::registration {
namespace {

namespace {

at::Tensor wrapper_PrivateUse1__view_as_real(const at::Tensor & self) {
  std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1__view_as_real", "self");

  const OptionalDeviceGuard device_guard(device_of(self));
  return at::native::view_as_real(self);
}

} // anonymous namespace

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("view_as_real", wrapped(wrapper_PrivateUse1__view_as_real));
}

} // namespace at::musa::registration
""",
        )

    def test_own_with_checks_and_guard(self):
        text = "- func: nonzero.out\n  device_check: ExactSame\n  device_guard: true\n  dispatch: {PrivateUse1: NonzeroOut}"
        self.assertExpectedInline(
            shard(text, "nonzero"),
            """\
#include <torch_musa/RegistrationHelpers.h>
#include <torch_musa/ops/nonzero_native.h>

namespace at::musa::registration {
namespace {

namespace {

at::Tensor & wrapper_PrivateUse1_out_nonzero_out(const at::Tensor & self, at::Tensor & out) {
  std::optional<Device> common_device = std::nullopt;
(void)common_device; // Suppress unused variable warning

  c10::impl::check_and_update_common_device(common_device, out, "wrapper_PrivateUse1_out_nonzero_out", "out");
  c10::impl::check_and_update_common_device(common_device, self, "wrapper_PrivateUse1_out_nonzero_out", "self");

  const OptionalDeviceGuard device_guard(device_of(self));
  return at::musa::NonzeroOut(self, out);
}

} // anonymous namespace

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero.out", wrapped(wrapper_PrivateUse1_out_nonzero_out));
}

} // namespace at::musa::registration
""",
        )

    def test_factory_guards_the_device_asked_for(self):
        text = "- func: empty_strided\n  device_guard: true\n  dispatch: {PrivateUse1: EmptyStrided}"
        self.assertExpectedInline(
            shard(text, "empty_strided"),
            """\
#include <torch_musa/RegistrationHelpers.h>
#include <torch_musa/ops/empty_strided_native.h>

namespace at::musa::registration {
namespace {

namespace {

at::Tensor wrapper_PrivateUse1__empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, ::std::optional<at::ScalarType> dtype, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<bool> pin_memory) {
    // No device check

  const DeviceGuard device_guard(device_or_default(device));
  return at::musa::EmptyStrided(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), dtype, layout, device, pin_memory);
}

} // anonymous namespace

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty_strided", wrapped(wrapper_PrivateUse1__empty_strided));
}

} // namespace at::musa::registration
""",
        )

    def test_symint_kernel(self):
        text = "- func: empty_strided\n  dispatch: {PrivateUse1: empty_strided_musa_symint}"
        self.assertExpectedInline(
            header(text, "empty_strided"),
            """\
namespace at::musa {

TORCH_API at::Tensor empty_strided_musa_symint(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, ::std::optional<at::ScalarType> dtype, ::std::optional<at::Layout> layout, ::std::optional<at::Device> device, ::std::optional<bool> pin_memory);

} // namespace at::musa
""",
        )

    def test_lists_optionals_and_generators(self):
        text = """\
            - func: index.Tensor
              dispatch: {PrivateUse1: Index}
            - func: index.Tensor_out
              dispatch: {PrivateUse1: MusaIndex}
            - func: bernoulli_.float
              dispatch: {PrivateUse1: Bernoulli_}
            - func: cat
            - func: cat.out
              dispatch: {PrivateUse1: MusaCat}
            """
        self.assertExpectedInline(
            header(text, "index"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaIndex : public at::meta::structured_index_Tensor {
  void impl(const at::Tensor & self, at::DimVector sizes, at::DimVector strides, const at::Tensor & out);
};

TORCH_API at::Tensor Index(const at::Tensor & self, const c10::List<::std::optional<at::Tensor>> & indices);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            header(text, "bernoulli"),
            """\
namespace at::musa {

TORCH_API at::Tensor & Bernoulli_(at::Tensor & self, double p, ::std::optional<at::Generator> generator);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            header(text, "cat"),
            """\
namespace at::musa {

struct TORCH_API structured_MusaCat : public at::meta::structured_cat {
  void impl(const at::ITensorListRef & tensors, int64_t dim, int64_t valid, bool all_contiguous, bool all_same_dtype, bool all_same_sizes_and_stride, at::MemoryFormat memory_format, const at::Tensor & out);
};

} // namespace at::musa
""",
        )

    def test_several_outputs(self):
        text = """\
            - func: max.dim
            - func: max.dim_max
              dispatch: {PrivateUse1: MusaMaxDim}
            """
        source = shard(text, "max")
        start = source.index("::std::tuple<at::Tensor,at::Tensor> wrapper")
        self.assertExpectedInline(
            source[start : source.index("}\n", start)],
            """\
::std::tuple<at::Tensor,at::Tensor> wrapper_PrivateUse1_max_dim(const at::Tensor & self, int64_t dim, bool keepdim) {
  // No device check

structured_MusaMaxDim_functional op;
auto precompute = op.meta(self, dim, keepdim);
(void)precompute;
op.impl(self, precompute.dim, keepdim, op.outputs_[0], op.outputs_[1]);
return std::make_tuple(std::move(op.outputs_[0]), std::move(op.outputs_[1]));
""",
        )

    def test_autogen(self):
        text = "- func: celu.out\n  dispatch: {PrivateUse1: CeluOut}"
        self.assertExpectedInline(
            header(text, "celu"),
            """\
namespace at::musa {

TORCH_API at::Tensor & CeluOut(const at::Tensor & self, const at::Scalar & alpha, at::Tensor & out);

} // namespace at::musa
""",
        )
        assert 'm.impl("celu.out", wrapped(wrapper_PrivateUse1_out_celu_out));' in shard(text, "celu")

    def test_new_operator(self):
        text = """\
            - func: musa::rope(Tensor q, float base=1e4, *, Generator? g=None) -> Tensor
              tags: [nondeterministic_seeded, pt2_compliant_tag]
              dispatch:
                PrivateUse1: Rope
                Meta: RopeMeta
                AutogradPrivateUse1: RopeAutograd
            """
        self.assertExpectedInline(
            header(text, "rope"),
            """\
namespace at::musa {

TORCH_API at::Tensor RopeAutograd(const at::Tensor & q, double base, ::std::optional<at::Generator> g);
TORCH_API at::Tensor RopeMeta(const at::Tensor & q, double base, ::std::optional<at::Generator> g);
TORCH_API at::Tensor Rope(const at::Tensor & q, double base, ::std::optional<at::Generator> g);

} // namespace at::musa
""",
        )
        self.assertExpectedInline(
            shard(text, "rope"),
            """\
#include <torch_musa/RegistrationHelpers.h>
#include <torch_musa/ops/rope_native.h>

namespace at::musa::registration {
namespace ops_musa {
namespace {

namespace {

at::Tensor wrapper_PrivateUse1__rope(const at::Tensor & q, double base, ::std::optional<at::Generator> g) {
    // No device check

  // DeviceGuard omitted
  return at::musa::Rope(q, base, g);
}

} // anonymous namespace

namespace {

at::Tensor wrapper_AutogradPrivateUse1__rope(const at::Tensor & q, double base, ::std::optional<at::Generator> g) {
    // No device check

  // DeviceGuard omitted
  return at::musa::RopeAutograd(q, base, g);
}

} // anonymous namespace

namespace {

at::Tensor wrapper_Meta__rope(const at::Tensor & q, double base, ::std::optional<at::Generator> g) {
    // No device check

  // DeviceGuard omitted
  return at::musa::RopeMeta(q, base, g);
}

} // anonymous namespace

} // namespace

TORCH_LIBRARY_FRAGMENT(musa, m) {
  m.def("rope(Tensor q, float base=1e4, *, Generator? g=None) -> Tensor", {at::Tag::nondeterministic_seeded, at::Tag::pt2_compliant_tag});
}

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(musa, PrivateUse1, m) {
  m.impl("rope", wrapped(wrapper_PrivateUse1__rope));
}

// RegisterAutogradPrivateUse1
TORCH_LIBRARY_IMPL(musa, AutogradPrivateUse1, m) {
  m.impl("rope", wrapped(wrapper_AutogradPrivateUse1__rope));
}

// RegisterMeta
TORCH_LIBRARY_IMPL(musa, Meta, m) {
  m.impl("rope", wrapped(wrapper_Meta__rope));
}

} // namespace ops_musa
} // namespace at::musa::registration
""",
        )

    def test_fallback(self):
        self.assertExpectedInline(
            shard("- func: erfinv.out\n  dispatch: {PrivateUse1: cpu_fallback}", "erfinv"),
            """\
#include <torch_musa/RegistrationHelpers.h>
#include <torch_musa/csrc/aten/CPUFallback.h>

namespace at::musa::registration {
namespace {

} // namespace

// RegisterPrivateUse1
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("erfinv.out", torch::CppFunction::makeFromBoxedFunction<&at::musa::cpu_fallback>());
}

} // namespace at::musa::registration
""",
        )

    def test_other_keys(self):
        text = """\
            - func: abs.out
              dispatch:
                SparsePrivateUse1: AbsSparseOut
                SparseCsrPrivateUse1, NestedTensorPrivateUse1: AbsOtherOut
            """
        source = shard(text, "abs")
        self.assertExpectedInline(
            source[source.index("// Register") :],
            """\
// RegisterNestedTensorPrivateUse1
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("abs.out", wrapped(wrapper_NestedTensorPrivateUse1_out_abs_out));
}

// RegisterSparseCsrPrivateUse1
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("abs.out", wrapped(wrapper_SparseCsrPrivateUse1_out_abs_out));
}

// RegisterSparsePrivateUse1
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("abs.out", wrapped(wrapper_SparsePrivateUse1_out_abs_out));
}

} // namespace at::musa::registration
""",
        )

    def test_op_table(self):
        table = json.loads(rendered(TRIL)[files.TABLE])
        assert table["torch"] == upstream().torch_version
        assert table["ops"]["tril_"] == [
            {
                "op": "tril_",
                "kind": "legacy_meta",
                "form": None,
                "dispatch_key": "PrivateUse1",
                "kernel": "MusaTril",
                "family": None,
                "source": None,
                "line": 2,
            }
        ]

    def test_umbrella_and_helpers(self):
        text = TRIL + "- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n"
        umbrella = rendered(text)[f"include/{MUSA.umbrella_header}"]
        assert "#include <torch_musa/ops/nonzero_native.h>\n#include <torch_musa/ops/tril_native.h>\n" in umbrella
        helpers = rendered(text)[f"include/{MUSA.helpers_header}"]
        for name in ("create_out", "maybe_create_proxy", "resize_out", "check_inplace"):
            assert f" {name}(" in helpers
        # Straight to the allocator: at::empty would go through the dispatcher once more.
        assert f"#include <{MUSA.empty_header}>\n" in helpers
        self.assertExpectedInline(
            helpers[helpers.index("inline Tensor create_out") : helpers.index("inline std::optional<Tensor>")],
            """\
inline Tensor create_out(IntArrayRef sizes, IntArrayRef strides, const TensorOptions &options) {
  if (strides.empty()) {
    return at::musa::empty_musa(sizes, options);
  }
  return at::musa::empty_strided_musa(sizes, strides, options);
}

""",
        )

    def test_functions_with_one_name_are_declared_once(self):
        text = """\
            - func: abs_
              dispatch: {PrivateUse1: Same}
            - func: neg_
              dispatch: {PrivateUse1: Same}
            - func: abs.out
              structured: false
              dispatch: {PrivateUse1: AbsOut}
            - func: neg.out
              dispatch: {PrivateUse1: NegOut}
            """
        # Default arguments would clash where the umbrella includes both headers; there are none.
        assert "alpha=1" not in "".join(rendered(text).values())
        assert header(text, "abs").count("Same(") == header(text, "neg").count("Same(") == 1

    def test_every_structured_group_of_upstream_can_be_emitted(self):
        groups = {str(g.out.func.name): g for g in upstream().groups.values() if g.structured}
        lines = []
        for number, (out, group) in enumerate(sorted(groups.items())):
            lines += [f"- func: {f.func.name}" for f in group.functions() if f is not group.out]
            lines += [f"- func: {out}", f"  dispatch: {{PrivateUse1: Kernel{number}}}"]
        found = registrations("\n".join(lines))
        assert len(found) > 500
        text = "".join(files.render(found, "test", MUSA).values())
        assert text.count("void impl(") == len(groups)
        assert text.count("m.impl(") == len(found)
