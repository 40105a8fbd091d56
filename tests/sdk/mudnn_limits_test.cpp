// One case per row of sdk/mudnn/limits.def, named after it (test_limits_table.py checks that
// none is missing), and what holds for every call: memory, streams, descriptors, the caller's
// modes.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "device_tensor.h"

using namespace musa::dnn;
using check::DeviceTensor;
using check::no_memory;

namespace {

Status add(DeviceTensor& out, DeviceTensor& lhs, DeviceTensor& rhs) {
  Handle h(0);
  Binary op;
  CHECK_OK(op.SetMode(Binary::Mode::ADD));
  return op.Run(h, out, lhs, rhs);
}

Status reduce(Reduce::Mode mode, DeviceTensor& out, DeviceTensor& in,
              std::initializer_list<int> dims) {
  Handle h(0);
  Reduce op;
  CHECK_OK(op.SetMode(mode));
  CHECK_OK(op.SetDim(dims));
  return op.Run(h, out, in, no_memory);
}

Status multiply(DeviceTensor& out, DeviceTensor& l, DeviceTensor& r) {
  Handle h(0);
  MatMul op;
  return op.Run(h, out, l, r, no_memory);
}

Status batch_multiply(DeviceTensor& out, DeviceTensor& l, DeviceTensor& r) {
  Handle h(0);
  BatchMatMul op;
  return op.Run(h, out, l, r, no_memory);
}

}  // namespace

// ---- rows of the table
// ---------------------------------------------------------------------------

TEST(limit_rank_0) {
  DeviceTensor a(at::ones({1}));
  DeviceTensor b(at::ones({1}));
  CHECK_STATUS(b.desc.SetNdInfo({}), INVALID_PARAMETER);
  CHECK_STATUS(add(a, a, b), INVALID_PARAMETER);
  const std::vector<int64_t> nine(9, 1);
  CHECK_STATUS(b.desc.SetNdInfo(9, nine.data()), INVALID_PARAMETER);
  CHECK_STATUS(add(a, a, b), INVALID_PARAMETER);
}

TEST(limit_zero_elements) {
  DeviceTensor empty(at::empty({0, 3}));
  DeviceTensor row(at::ones({3}));
  CHECK_STATUS(add(empty, empty, row), NOT_SUPPORTED);
  Handle h(0);
  Fill op;
  CHECK_OK(op.SetValue(1.0));
  CHECK_STATUS(op.Run(h, empty), NOT_SUPPORTED);
}

TEST_WITH_ENV(limit_bfloat16, "MUSA_ARCH=mp_21") {
  DeviceTensor brain(at::ones({3}, at::kBFloat16));
  DeviceTensor half(at::ones({3}, at::kHalf));
  CHECK_STATUS(add(brain, brain, brain), NOT_SUPPORTED);
  CHECK_OK(add(half, half, half));
}

TEST_WITH_ENV(limit_bfloat16_is_fine_from_2_2, "MUSA_ARCH=mp_22") {
  DeviceTensor brain(at::ones({3}, at::kBFloat16));
  CHECK_OK(add(brain, brain, brain));
}

TEST_WITH_ENV(limit_fp8, "MUSA_ARCH=mp_22") {
  Handle h(0);
  DeviceTensor in(at::ones({3}));
  DeviceTensor out(at::zeros({3}, at::kByte));
  CHECK_OK(out.desc.SetType(Tensor::Type::FP8_E4M3));
  Unary op;
  CHECK_OK(op.SetMode(Unary::Mode::CAST));
  CHECK_STATUS(op.Run(h, out, in), NOT_SUPPORTED);
}

TEST(limit_unary_bool_arithmetic) {
  Handle h(0);
  DeviceTensor flags(at::ones({3}, at::kBool));
  for (auto mode : {Unary::Mode::ADD, Unary::Mode::MUL, Unary::Mode::ABS, Unary::Mode::RELU}) {
    Unary op;
    CHECK_OK(op.SetMode(mode));
    CHECK_STATUS(op.Run(h, flags, flags), NOT_SUPPORTED);
  }
  for (auto mode : {Unary::Mode::EQ, Unary::Mode::IDENTITY, Unary::Mode::CAST}) {
    Unary op;
    CHECK_OK(op.SetMode(mode));
    CHECK_OK(op.Run(h, flags, flags));
  }
}

TEST(limit_binary_bool_arithmetic) {
  Handle h(0);
  DeviceTensor flags(at::ones({3}, at::kBool));
  for (auto mode : {Binary::Mode::ADD, Binary::Mode::MUL, Binary::Mode::MAX, Binary::Mode::POW}) {
    Binary op;
    CHECK_OK(op.SetMode(mode));
    CHECK_STATUS(op.Run(h, flags, flags, flags), NOT_SUPPORTED);
  }
}

TEST(limit_reduce_prod_bool_to_int64) {
  DeviceTensor flags(at::ones({2, 3}, at::kBool));
  DeviceTensor out(at::zeros({3}, at::kLong));
  CHECK_STATUS(reduce(Reduce::Mode::PROD, out, flags, {0}), NOT_SUPPORTED);
}

TEST(limit_reduce_add_uint8) {
  DeviceTensor bytes(at::ones({2, 3}, at::kByte));
  DeviceTensor out(at::zeros({3}, at::kLong));
  CHECK_STATUS(reduce(Reduce::Mode::ADD, out, bytes, {0}), NOT_SUPPORTED);
  DeviceTensor shorts(at::ones({2, 3}, at::kShort));
  CHECK_OK(reduce(Reduce::Mode::ADD, out, shorts, {0}));
}

TEST(limit_reduce_mul) {
  DeviceTensor in(at::full({2, 3}, 2.0));
  DeviceTensor out(at::ones({3}));
  CHECK_OK(reduce(Reduce::Mode::MUL, out, in, {0}));
  CHECK(at::equal(out.read(), at::zeros({3})));
}

TEST(limit_reduce_broadcast_several_dims) {
  DeviceTensor in(at::ones({1, 1}).expand({2, 3}));
  DeviceTensor out(at::full({1}, 7.0));
  CHECK_STATUS(reduce(Reduce::Mode::ADD, out, in, {0, 1}), EXECUTION_FAILED);
  CHECK_STATUS(reduce(Reduce::Mode::ADD, out, in, {}), EXECUTION_FAILED);
}

TEST(limit_reduce_broadcast_one_dim) {
  DeviceTensor in(at::ones({1, 1}).expand({2, 3}));
  DeviceTensor out(at::full({3}, 7.0));
  CHECK_OK(reduce(Reduce::Mode::ADD, out, in, {0}));
  CHECK(at::equal(out.read(), at::tensor({2.0f, 7.0f, 7.0f})));
  // A broadcast row is not a broadcast element.
  DeviceTensor rows(at::ones({1, 3}).expand({2, 3}));
  CHECK_OK(reduce(Reduce::Mode::ADD, out, rows, {0}));
  CHECK(at::equal(out.read(), at::full({3}, 2.0)));
}

TEST(limit_softmax_contiguous) {
  Handle h(0);
  Softmax op;
  CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
  DeviceTensor in(at::ones({3, 4}).t());
  DeviceTensor out(at::zeros({4, 3}));
  CHECK_STATUS(op.Run(h, out, in), INVALID_PARAMETER);
}

TEST(limit_matmul_double) {
  DeviceTensor a(at::ones({2, 2}, at::kDouble));
  CHECK_STATUS(multiply(a, a, a), NOT_SUPPORTED);
}

TEST(limit_batch_matmul_double) {
  DeviceTensor a(at::ones({2, 2, 2}, at::kDouble));
  CHECK_STATUS(batch_multiply(a, a, a), NOT_SUPPORTED);
}

// A column turned into a row by a transpose: contiguous to PyTorch, stride 1 to the library.
TEST(limit_matmul_leading_dimension) {
  const at::Tensor row = at::ones({4, 1}).t();
  CHECK(row.is_contiguous() && row.stride(0) == 1);
  DeviceTensor l(row);
  DeviceTensor r(at::ones({4, 3}));
  DeviceTensor out(at::zeros({1, 3}));
  CHECK_STATUS(multiply(out, l, r), INVALID_PARAMETER);
}

TEST(limit_batch_matmul_leading_dimension) {
  DeviceTensor l(at::ones({2, 4, 1}).transpose(1, 2));
  DeviceTensor r(at::ones({2, 4, 3}));
  DeviceTensor out(at::zeros({2, 1, 3}));
  CHECK_STATUS(batch_multiply(out, l, r), INVALID_PARAMETER);
}

TEST(limit_matmul_layout) {
  DeviceTensor sliced(at::ones({4, 6}).slice(1, 0, 4));
  DeviceTensor square(at::ones({4, 4}));
  DeviceTensor out(at::zeros({4, 4}));
  CHECK_STATUS(multiply(out, sliced, square), INVALID_PARAMETER);
  CHECK_OK(multiply(out, square, square));
}

TEST(limit_batch_matmul_layout) {
  DeviceTensor mixed(at::ones({4, 2, 4}).transpose(0, 1));
  DeviceTensor square(at::ones({2, 4, 4}));
  DeviceTensor out(at::zeros({2, 4, 4}));
  CHECK_STATUS(batch_multiply(out, mixed, square), INVALID_PARAMETER);
  CHECK_OK(batch_multiply(out, square, square));
}

TEST(limit_convolution_2d_only) {
  Handle h(0);
  DeviceTensor in(at::ones({1, 2, 8}));
  DeviceTensor filter(at::ones({3, 2, 3}));
  DeviceTensor out(at::zeros({1, 3, 6}));
  Convolution op;
  CHECK_OK(op.SetNdInfo({0}, {1}, {1}));
  CHECK_STATUS(op.Run(h, out, in, filter, Convolution::Algorithm::IMPLICIT_GEMM, no_memory),
               NOT_SUPPORTED);
}

TEST(limit_convolution_fused_bias_with_groups) {
  Handle h(0);
  DeviceTensor in(at::ones({1, 4, 5, 5})), filter(at::ones({4, 2, 3, 3})), bias(at::ones({4}));
  DeviceTensor out(at::zeros({1, 4, 3, 3}));
  Convolution op;
  CHECK_OK(op.SetNdInfo({0, 0}, {1, 1}, {1, 1}));
  CHECK_OK(op.SetGroups(2));
  const auto run = [&](const Tensor& b) {
    return op.RunFusion(h, out, in, filter, b, Tensor(), {}, Convolution::Algorithm::IMPLICIT_GEMM,
                        no_memory);
  };
  CHECK_STATUS(run(bias), NOT_SUPPORTED);
  CHECK_OK(run(Tensor()));
}

TEST(limit_convolution_recommended_algorithm) {
  Handle h(0);
  DeviceTensor in(at::ones({1, 4, 5, 5})), filter(at::ones({4, 2, 3, 3}));
  DeviceTensor out(at::zeros({1, 4, 3, 3}));
  Convolution op;
  CHECK_OK(op.SetNdInfo({0, 0}, {1, 1}, {1, 1}));
  CHECK_OK(op.SetGroups(2));
  auto algorithm = Convolution::Algorithm::GEMM;
  CHECK_OK(op.GetRecommendForwardAlgorithm(h, algorithm, out, in, filter));
  CHECK_STATUS(op.Run(h, out, in, filter, algorithm, no_memory), NOT_SUPPORTED);
  CHECK_OK(op.Run(h, out, in, filter, Convolution::Algorithm::IMPLICIT_GEMM, no_memory));
}

namespace {

Status fill(DeviceTensor& t) {
  Handle h(0);
  Fill op;
  CHECK_OK(op.SetValue(1.0));
  return op.Run(h, t);
}

Status flash(at::ScalarType type, int64_t width, int64_t value_width) {
  Handle h(0);
  DeviceTensor q(at::ones({1, 2, 3, width}, type)), v(at::ones({1, 2, 3, value_width}, type));
  DeviceTensor out(at::zeros({1, 2, 3, value_width}, type)), lse(at::zeros({1, 2, 3}));
  ScaledDotProductAttention op;
  CHECK_OK(op.SetHeadsNum(2));
  CHECK_OK(op.SetEmbedDim(static_cast<int>(2 * width)));
  Tensor none;
  return op.RunFlash(h, out, lse, q, q, v, none, none, no_memory);
}

Status math(at::ScalarType type) {
  Handle h(0);
  DeviceTensor q(at::ones({1, 2, 3, 4}, type)), out(at::zeros({1, 2, 3, 4}, type));
  DeviceTensor weights(at::zeros({1, 2, 3, 3}, type));
  ScaledDotProductAttention op;
  CHECK_OK(op.SetHeadsNum(2));
  CHECK_OK(op.SetEmbedDim(8));
  Tensor none;
  return op.RunMath(h, out, weights, q, q, q, none, none, no_memory);
}

Status cross_entropy() {
  Handle h(0);
  DeviceTensor in(at::ones({2, 3})), target(at::zeros({2}, at::kLong)), out(at::zeros({1}));
  CrossEntropyLoss op;
  CHECK_OK(op.SetReductionMode(CrossEntropyLoss::ReductionMode::MEAN));
  return op.Run(h, out, in, target, Tensor(), no_memory);
}

template <class T>
concept HasComplex =
    requires { T::COMPLEX64; } || requires { T::COMPLEX128; } || requires { T::COMPLEX; };

}  // namespace

TEST_WITH_ENV(limit_double_precision, "TORCH_MUSA_HOST_FP64=0") {
  DeviceTensor wide(at::ones({3}, at::kDouble)), single(at::ones({3}));
  CHECK_STATUS(fill(wide), NOT_SUPPORTED);
  CHECK_STATUS(add(wide, wide, wide), NOT_SUPPORTED);
  CHECK_OK(fill(single));
}

TEST_WITH_ENV(limit_double_precision_below_2_2, "MUSA_ARCH=mp_21") {
  DeviceTensor wide(at::ones({3}, at::kDouble));
  CHECK_STATUS(fill(wide), NOT_SUPPORTED);
}

TEST_WITH_ENV(limit_double_precision_is_there_from_2_2, "MUSA_ARCH=mp_22") {
  DeviceTensor wide(at::ones({3}, at::kDouble));
  CHECK_OK(fill(wide));
}

TEST(limit_complex_types) { static_assert(!HasComplex<Tensor::Type>); }

TEST(limit_tf32_default) {
  // 1 + 2^-12 has one bit more than TF32 keeps.
  const float value = 1 + 0x1p-12f;
  DeviceTensor l(at::full({1, 1}, value)), r(at::ones({1, 1})), out(at::zeros({1, 1}));
  const auto product = [&](Handle& h, ComputeMode mode) {
    MatMul op;
    CHECK_OK(op.SetComputeMode(mode));
    CHECK_OK(op.Run(h, out, l, r, no_memory));
    return out.read().item<float>();
  };
  Handle untouched(0), strict(0);
  CHECK_OK(strict.SetAllowTF32(false));
  CHECK_EQ(product(untouched, ComputeMode::TENSOR), 1.0f);
  CHECK_EQ(product(untouched, ComputeMode::SCALAR), value);
  CHECK_EQ(product(strict, ComputeMode::TENSOR), value);
}

TEST_WITH_ENV(limit_tf32_default_needs_2_2, "MUSA_ARCH=mp_21") {
  const float value = 1 + 0x1p-12f;
  DeviceTensor l(at::full({1, 1}, value)), r(at::ones({1, 1})), out(at::zeros({1, 1}));
  Handle h(0);
  MatMul op;
  CHECK_OK(op.SetComputeMode(ComputeMode::TENSOR));
  CHECK_OK(op.Run(h, out, l, r, no_memory));
  CHECK_EQ(out.read().item<float>(), value);
}

TEST(limit_unary_unset_parameters) {
  Handle h(0);
  DeviceTensor in(at::full({3}, 5.0)), out(at::ones({3}));
  for (auto mode : {Unary::Mode::CLIP, Unary::Mode::HARDSIGMOID}) {
    Unary op;
    CHECK_OK(op.SetMode(mode));
    CHECK_OK(op.Run(h, out, in));
    CHECK(at::equal(out.read(), at::zeros({3})));
  }
}

TEST_WITH_ENV(limit_flash_architecture, "MUSA_ARCH=mp_21") {
  CHECK_STATUS(flash(at::kHalf, 8, 8), NOT_SUPPORTED);
  CHECK_OK(math(at::kHalf));
}

TEST_WITH_ENV(limit_flash_architecture_is_there_from_2_2, "MUSA_ARCH=mp_22") {
  CHECK_OK(flash(at::kHalf, 8, 8));
}

TEST(limit_flash_types) {
  CHECK_STATUS(flash(at::kFloat, 8, 8), NOT_SUPPORTED);
  CHECK_OK(flash(at::kHalf, 8, 8));
  CHECK_OK(flash(at::kBFloat16, 8, 8));
}

TEST(limit_flash_width) {
  CHECK_OK(flash(at::kHalf, 128, 128));
  CHECK_OK(flash(at::kHalf, 192, 128));
  CHECK_OK(flash(at::kHalf, 160, 160));
  CHECK_STATUS(flash(at::kHalf, 136, 128), NOT_SUPPORTED);
  CHECK_STATUS(flash(at::kHalf, 256, 256), NOT_SUPPORTED);
}

TEST(limit_attention_double) { CHECK_STATUS(math(at::kDouble), NOT_SUPPORTED); }

TEST_WITH_ENV(limit_cross_entropy_architecture, "MUSA_ARCH=mp_22") {
  CHECK_STATUS(cross_entropy(), NOT_SUPPORTED);
}

TEST(limit_cross_entropy_architecture_is_there_from_3_0) { CHECK_OK(cross_entropy()); }

// ---- every call
// ----------------------------------------------------------------------------------

TEST(host_memory_is_refused) {
  DeviceTensor a(at::ones({3}));
  DeviceTensor b(at::ones({3}));
  at::Tensor host = at::ones({3});
  CHECK_OK(b.desc.SetAddr(host.data_ptr()));
  CHECK_STATUS(add(a, a, b), EXECUTION_FAILED);
  CHECK_OK(b.desc.SetAddr(nullptr));
  CHECK_STATUS(add(a, a, b), INVALID_PARAMETER);
}

TEST(memory_of_another_device_is_refused) {
  DeviceTensor here(at::ones({3}));
  DeviceTensor there(at::ones({3}), 1);
  CHECK_STATUS(add(here, here, there), EXECUTION_FAILED);
}

TEST(an_operand_past_its_allocation_is_refused) {
  DeviceTensor a(at::ones({100}));
  CHECK_OK(a.desc.SetNdInfo({200}));
  CHECK_STATUS(add(a, a, a), EXECUTION_FAILED);
}

TEST(an_output_that_overlaps_itself_is_refused) {
  DeviceTensor out(at::ones({1, 3}).expand({2, 3}));
  DeviceTensor in(at::ones({2, 3}));
  CHECK_STATUS(add(out, in, in), INVALID_PARAMETER);
}

TEST(a_dead_stream_is_refused) {
  musaStream_t stream = nullptr;
  CHECK_EQ(musaStreamCreate(&stream), musaSuccess);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
  Handle h(0);
  CHECK_OK(h.SetStream(stream));
  CHECK(h.GetStream() == stream);
  Fill op;
  CHECK_OK(op.SetValue(1.0));
  DeviceTensor t(at::zeros({3}));
  CHECK_STATUS(op.Run(h, t), INVALID_PARAMETER);
}

TEST(descriptors) {
  Tensor t;
  CHECK_STATUS(t.SetNdInfo({2, -1}), INVALID_PARAMETER);
  CHECK_STATUS(t.SetNdInfo({2, 3}, {1}), INVALID_PARAMETER);
  CHECK_STATUS(t.SetNdInfo({2}, {-1}), INVALID_PARAMETER);
  CHECK_OK(t.SetNdInfo({2, 3, 4}));
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  CHECK_OK(t.GetNdInfo(dims, strides));
  CHECK((dims == std::vector<int64_t>{2, 3, 4}));
  CHECK((strides == std::vector<int64_t>{12, 4, 1}));
  CHECK_OK(t.SetFormat(Tensor::Format::NHWC));
  CHECK_OK(t.SetQuantizationInfo(0.5f, 3));
  CHECK_STATUS(t.SetType(static_cast<Tensor::Type>(99)), INVALID_PARAMETER);
}

TEST(quantized_operands_are_not_computed_on) {
  DeviceTensor a(at::zeros({3}, at::kChar));
  CHECK_OK(a.desc.SetType(Tensor::Type::QINT8));
  CHECK_STATUS(add(a, a, a), NOT_SUPPORTED);
}

// A library call is deaf to what surrounds the caller.
TEST(the_callers_modes_do_not_reach_in) {
  DeviceTensor a(at::ones({2, 2}));
  DeviceTensor b(at::ones({2, 2}));
  const c10::impl::IncludeDispatchKeyGuard autocast(
      c10::DispatchKeySet(c10::DispatchKey::AutocastCPU));
  const c10::impl::IncludeDispatchKeyGuard functorch(
      c10::DispatchKeySet(c10::DispatchKey::FuncTorchDynamicLayerFrontMode));
  CHECK_OK(add(a, a, b));
  CHECK_OK(multiply(a, b, b));
}

TEST(calls_from_several_threads) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&failures, i] {
      try {
        DeviceTensor t(at::full({1000}, i, at::kFloat));
        for (int n = 0; n < 50; ++n) CHECK_OK(add(t, t, t));
        CHECK_CLOSE(t.read(), at::full({1000}, i * std::pow(2.0, 50)).to(at::kFloat), 1e-6);
      } catch (const std::exception&) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failures.load(), 0);
}
