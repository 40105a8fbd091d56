#include <torch_musa/ops/native_group_norm_backward_native.h>
#include <torch_musa/ops/native_group_norm_native.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

bool IsLowPrecision(const Tensor& t) {
  return t.scalar_type() == kHalf || t.scalar_type() == kBFloat16;
}

// The dtype of parameters and statistics: that of the input, or float beside a half-precision
// input.
ScalarType StatisticsType(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  CheckFloatingType(input.scalar_type(), "group_norm");
  ScalarType dtype = input.scalar_type();
  for (const Tensor* t : {&weight, &bias}) {
    if (IsLowPrecision(input) && t->defined() && t->scalar_type() == kFloat) dtype = kFloat;
  }
  for (const Tensor* t : {&weight, &bias}) {
    TORCH_CHECK(!t->defined() || t->scalar_type() == dtype,
                "group_norm: expect parameter to have scalar type of ", dtype, ", but got ",
                t->defined() ? t->scalar_type() : dtype);
  }
  return dtype;
}

void CheckGroups(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t C,
                 int64_t group) {
  TORCH_CHECK(group > 0, "Expected num groups to be greater than 0, got ", group);
  TORCH_CHECK(C % group == 0,
              "Expected number of channels in input to be divisible by num_groups, but got input "
              "of shape ",
              input.sizes(), " and num_groups=", group);
  for (const Tensor* t : {&weight, &bias}) {
    TORCH_CHECK(!t->defined() || (t->dim() == 1 && t->numel() == C), "Expected ",
                t == &weight ? "weight" : "bias",
                " to be a vector of size equal to the number of channels in input, but got one of "
                "shape ",
                t->defined() ? t->sizes() : IntArrayRef(), " and input of shape ", input.sizes());
  }
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> NativeGroupNorm(const Tensor& input,
                                                   const std::optional<Tensor>& weight_opt,
                                                   const std::optional<Tensor>& bias_opt, int64_t N,
                                                   int64_t C, int64_t HxW, int64_t group,
                                                   double eps) {
  const Tensor weight = weight_opt.value_or(Tensor()), bias = bias_opt.value_or(Tensor());
  CheckGroups(input, weight, bias, C, group);
  const TensorOptions statistics = input.options().dtype(StatisticsType(input, weight, bias));
  const c10::musa::MUSAGuard guard(input.device());
  Tensor out = at::empty_like(input, input.suggest_memory_format());
  Tensor mean = at::zeros({N, group}, statistics);
  Tensor rstd = at::empty({N, group}, statistics);
  if (out.numel() == 0) {
    rstd.fill_(std::numeric_limits<double>::quiet_NaN());  // of groups without elements
    return {out, mean, rstd};
  }

  const Tensor x = input.reshape({N, C, HxW}).contiguous();
  const Tensor gamma = weight.defined() ? weight.contiguous() : weight;
  const Tensor beta = bias.defined() ? bias.contiguous() : bias;
  const DenseOutput result(out);

  muTensor mt_out = DescribeDense(result.tensor().view({N, C, HxW}));
  muTensor mt_mean = DescribeDense(mean), mt_rstd = DescribeDense(rstd);
  ::musa::dnn::GroupNorm op;
  CHECK_MUDNN_STATUS(op.SetAxis(1), "SetAxis");
  CHECK_MUDNN_STATUS(op.SetEpsilon(eps), "SetEpsilon");
  CHECK_MUDNN_STATUS(op.SetGroup(ToInt(group)), "SetGroup");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mt_out, mt_mean, mt_rstd, DescribeDense(x),
                            DescribeDense(gamma), DescribeDense(beta)),
                     "GroupNorm");
  result.finish();
  return {out, mean, rstd};
}

// muDNN has no gradient of GroupNorm. With the scale taken into the incoming gradient, normalizing
// a group is normalizing a layer without parameters, and that gradient it has.
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
  const ScalarType wide = IsLowPrecision(input) ? kFloat : input.scalar_type();

  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    const Tensor scaled =
        weight.defined() ? (dy * weight.view({1, C, 1})).to(input.scalar_type()) : dy;
    grad_input = std::get<0>(at::native_layer_norm_backward(
                                 scaled.reshape({slices, length}), x.reshape({slices, length}),
                                 {length}, mean.reshape({slices, 1}), rstd.reshape({slices, 1}),
                                 std::nullopt, std::nullopt, {true, false, false}))
                     .view(input.sizes())
                     .contiguous(input.suggest_memory_format());
  }
  if (output_mask[1]) {
    const auto per_group = [&](const Tensor& t) { return t.to(wide).view({N, group, 1, 1}); };
    const Tensor centred = x.to(wide).view({N, group, C / group, HxW}) - per_group(mean);
    const Tensor normalized = (centred * per_group(rstd)).view({N, C, HxW});
    grad_weight = (dy.to(wide) * normalized).sum(IntArrayRef{0, 2}).to(parameter.dtype());
  }
  if (output_mask[2]) grad_bias = dy.to(wide).sum(IntArrayRef{0, 2}).to(parameter.dtype());
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace at::musa
