#include <torch_musa/ops/native_group_norm_backward_native.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {

// muDNN has no gradient of GroupNorm. With the scale taken into the incoming gradient, normalizing
// a group is normalizing a layer without parameters, and that gradient it has. The forward pass
// needs no kernel: PyTorch's own formula for it is a batch norm.
std::tuple<Tensor, Tensor, Tensor> NativeGroupNormBackward(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
    const std::optional<Tensor>& weight_opt, int64_t N, int64_t C, int64_t HxW, int64_t group,
    std::array<bool, 3> output_mask) {
  TORCH_CHECK(grad_out.scalar_type() == input.scalar_type(), "Expected scalar type ",
              input.scalar_type(), " for the gradient, but got ", grad_out.scalar_type());
  TORCH_CHECK(mean.numel() == N * group && rstd.numel() == N * group,
              "group_norm_backward: expected one mean and rstd per sample and group (", N, " x ",
              group, "), but got ", mean.sizes(), " and ", rstd.sizes());
  const c10::musa::MUSAGuard guard(input.device());
  const Tensor weight = weight_opt.value_or(Tensor());
  const TensorOptions parameter = weight.defined() ? weight.options() : input.options();
  if (input.numel() == 0) {
    return {output_mask[0] ? at::zeros(input.sizes(), input.options()) : Tensor(),
            output_mask[1] ? at::zeros({C}, parameter) : Tensor(),
            output_mask[2] ? at::zeros({C}, parameter) : Tensor()};
  }
  const int64_t slices = N * group, length = C / group * HxW;
  const Tensor dy = grad_out.reshape({N, C, HxW}), x = input.reshape({N, C, HxW});
  // Sums run over batch and image, in float for half-precision inputs.
  const bool low_precision = input.scalar_type() == kHalf || input.scalar_type() == kBFloat16;
  const ScalarType wide = low_precision ? kFloat : input.scalar_type();

  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    const Tensor scaled =
        weight.defined() ? (dy * weight.view({1, C, 1})).to(input.scalar_type()) : dy;
    grad_input = std::get<0>(at::native_layer_norm_backward(
                                 scaled.reshape({slices, length}), x.reshape({slices, length}),
                                 {length}, mean.reshape({slices, 1}), rstd.reshape({slices, 1}),
                                 std::nullopt, std::nullopt, {true, false, false}))
                     .view(input.sizes());
  }
  if (output_mask[1]) {
    const auto per_group = [&](const Tensor& t) { return t.to(wide).view({N, group, 1, 1}); };
    const Tensor centred = x.to(wide).view({N, group, C / group, HxW}) - per_group(mean);
    const Tensor normalized = (centred * per_group(rstd)).view({N, C, HxW});
    grad_weight = (dy.to(wide) * normalized).sum({0, 2}).to(parameter.dtype());
  }
  if (output_mask[2]) grad_bias = dy.to(wide).sum({0, 2}).to(parameter.dtype());
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace at::musa
