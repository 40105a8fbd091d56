#include <torch_musa/ops/native_dropout_backward_native.h>
#include <torch_musa/ops/native_dropout_native.h>

#include <ATen/Context.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

// Four elements share a subsequence and ask it for one block of words.
PhiloxState ReserveDraw(DeviceIndex device) {
  auto* generator = at::get_generator_or_default<MUSAGeneratorImpl>(
      std::nullopt, detail::getDefaultMUSAGenerator(device));
  const std::lock_guard lock(generator->mutex_);
  return generator->philox_musa_state(1);
}

// The tensor, or a copy with the strides that empty_like gives: no element of its memory is left
// out or there twice.
Tensor InMemoryOrder(const Tensor& t) { return t.is_non_overlapping_and_dense() ? t : t.clone(); }

// All of its memory as a vector: what goes element by element needs no more, if all go in one
// order.
muTensor DescribeMemory(const Tensor& t) {
  return CreateMUTensor(t.data_ptr(), t.scalar_type(), IntArrayRef(t.numel()));
}

}  // namespace

std::tuple<Tensor, Tensor> NativeDropout(const Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const c10::musa::MUSAGuard guard(input.device());
  const TensorOptions mask_options = input.options().dtype(kBool);
  // Nothing to mask: the CPU gives the mask the input's dtype then, and so do we.
  if (input.numel() == 0) return {input, at::empty_like(input)};
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, mask_options)};
  TORCH_CHECK(!isIntegralType(input.scalar_type(), /*includeBool=*/true),
              "result type Float can't be cast to the desired output type ", input.scalar_type());
  CheckFloatingType(input.scalar_type(), "native_dropout");
  // 1 / (1 - p) has no value there.
  if (p == 1) return {at::zeros_like(input), at::zeros_like(input, mask_options)};

  const Tensor values = InMemoryOrder(input);
  Tensor out = at::empty_like(values);
  Tensor mask = at::empty_like(values, mask_options);
  const PhiloxState state = ReserveDraw(input.get_device());

  muTensor mt_out = DescribeMemory(out), mt_mask = DescribeMemory(mask);
  ::musa::dnn::Dropout op;
  CHECK_MUDNN_STATUS(op.SetP(p), "SetP");
  CHECK_MUDNN_STATUS(op.SetScale(1 / (1 - p)), "SetScale");
  if (state.is_captured()) {
    CHECK_MUDNN_STATUS(op.SetSeed(state.device_seed()), "SetSeed");
    CHECK_MUDNN_STATUS(op.SetOffset(state.device_offset(), state.offset), "SetOffset");
  } else {
    CHECK_MUDNN_STATUS(op.SetSeed(state.seed), "SetSeed");
    CHECK_MUDNN_STATUS(op.SetOffset(state.offset), "SetOffset");
  }
  CHECK_MUDNN_STATUS(op.RunDropout(GetMudnnHandle(), mt_out, DescribeMemory(values), mt_mask),
                     "Dropout");
  return {out, mask};
}

Tensor NativeDropoutBackward(const Tensor& grad_output, const Tensor& mask, double scale) {
  TORCH_CHECK(mask.scalar_type() == kBool, "Mask should be Bool Scalar Type", mask.scalar_type());
  TORCH_CHECK(grad_output.sizes() == mask.sizes(),
              "native_dropout_backward: grad_output has sizes ", grad_output.sizes(), " and mask ",
              mask.sizes());
  CheckFloatingType(grad_output.scalar_type(), "native_dropout_backward");
  const c10::musa::MUSAGuard guard(grad_output.device());
  const Tensor grad = InMemoryOrder(grad_output);
  const Tensor kept = mask.strides().equals(grad.strides())
                          ? mask
                          : at::empty_like(grad, mask.options()).copy_(mask);
  Tensor result = at::empty_like(grad);
  if (result.numel() == 0) return result;

  muTensor mt_result = DescribeMemory(result);
  ::musa::dnn::Dropout op;
  CHECK_MUDNN_STATUS(op.SetScale(scale), "SetScale");
  CHECK_MUDNN_STATUS(
      op.RunDropoutBwd(GetMudnnHandle(), mt_result, DescribeMemory(grad), DescribeMemory(kept)),
      "Dropout, gradient");
  return result;
}

}  // namespace at::musa
