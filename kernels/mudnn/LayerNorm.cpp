#include <torch_musa/ops/native_layer_norm_backward_native.h>
#include <torch_musa/ops/native_layer_norm_native.h>

#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

using ::musa::dnn::LayerNorm;

// The input as M slices of N elements, whatever its rank.
struct Slices {
  int64_t count, length;
};

Slices CheckInputs(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                   const Tensor& bias) {
  CheckFloatingType(input.scalar_type(), "layer_norm");
  const auto [count, length] =
      at::native::_check_layer_norm_inputs(input, normalized_shape, weight, bias);
  return {count, length};
}

// The dtype of parameters and statistics: that of the input, or float beside a half-precision
// input.
ScalarType StatisticsType(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const bool low_precision = input.scalar_type() == kHalf || input.scalar_type() == kBFloat16;
  ScalarType dtype = input.scalar_type();
  for (const Tensor* t : {&weight, &bias}) {
    if (low_precision && t->defined() && t->scalar_type() == kFloat) dtype = kFloat;
  }
  for (const Tensor* t : {&weight, &bias}) {
    TORCH_CHECK(!t->defined() || t->scalar_type() == dtype,
                "layer_norm: expect parameter to have scalar type of ", dtype, ", but got ",
                t->defined() ? t->scalar_type() : dtype);
  }
  return dtype;
}

LayerNorm Configure(double eps, ScalarType dtype) {
  const int axis = 1;
  LayerNorm op;
  CHECK_MUDNN_STATUS(op.SetAxis(1, &axis), "SetAxis");
  CHECK_MUDNN_STATUS(op.SetEpsilon(eps), "SetEpsilon");
  // One pass is accurate enough for what half precision can hold; wider types get the stable
  // algorithm.
  const bool low_precision = dtype == kHalf || dtype == kBFloat16;
  CHECK_MUDNN_STATUS(
      op.SetVarMode(low_precision ? LayerNorm::VarMode::DIRECT : LayerNorm::VarMode::WELFORD),
      "SetVarMode");
  return op;
}

// A contiguous (M, N) view or copy.
Tensor AsSlices(const Tensor& tensor, Slices s) {
  return tensor.contiguous().view({s.count, s.length});
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> NativeLayerNorm(const Tensor& input,
                                                   IntArrayRef normalized_shape,
                                                   const std::optional<Tensor>& weight_opt,
                                                   const std::optional<Tensor>& bias_opt,
                                                   double eps) {
  const Tensor weight = weight_opt.value_or(Tensor()), bias = bias_opt.value_or(Tensor());
  const Slices s = CheckInputs(input, normalized_shape, weight, bias);
  const TensorOptions statistics = input.options().dtype(StatisticsType(input, weight, bias));
  const c10::musa::MUSAGuard guard(input.device());

  DimVector statistics_sizes(input.sizes().begin(), input.sizes().end());
  std::fill(statistics_sizes.end() - static_cast<int64_t>(normalized_shape.size()),
            statistics_sizes.end(), 1);
  Tensor out = at::empty(input.sizes(), input.options());
  Tensor mean = at::empty(statistics_sizes, statistics);
  Tensor rstd = at::empty(statistics_sizes, statistics);
  if (out.numel() == 0) {
    mean.zero_();
    rstd.fill_(std::numeric_limits<double>::quiet_NaN());  // of slices without elements
    return {out, mean, rstd};
  }
  // muDNN takes both parameters or neither.
  Tensor gamma, beta;
  if (weight.defined() || bias.defined()) {
    gamma = weight.defined() ? weight.contiguous() : at::ones(normalized_shape, statistics);
    beta = bias.defined() ? bias.contiguous() : at::zeros(normalized_shape, statistics);
  }
  const Tensor slices = AsSlices(input, s);

  muTensor mt_out = DescribeDense(out.view({s.count, s.length}));
  muTensor mt_mean = DescribeDense(mean.view({s.count}));
  muTensor mt_rstd = DescribeDense(rstd.view({s.count}));
  CHECK_MUDNN_STATUS(Configure(eps, input.scalar_type())
                         .Run(GetMudnnHandle(), mt_out, mt_mean, mt_rstd, DescribeDense(slices),
                              DescribeDense(gamma), DescribeDense(beta), InternalMemAlloc),
                     "LayerNorm");
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> NativeLayerNormBackward(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& mean,
    const Tensor& rstd, const std::optional<Tensor>& weight_opt,
    const std::optional<Tensor>& bias_opt, std::array<bool, 3> output_mask) {
  const Tensor weight = weight_opt.value_or(Tensor()), bias = bias_opt.value_or(Tensor());
  const Slices s = CheckInputs(input, normalized_shape, weight, bias);
  const TensorOptions parameter = input.options().dtype(StatisticsType(input, weight, bias));
  const c10::musa::MUSAGuard guard(input.device());

  Tensor grad_input = at::empty(input.sizes(), input.options());
  Tensor grad_weight, grad_bias;
  if (output_mask[1] && weight.defined()) grad_weight = at::empty(normalized_shape, parameter);
  if (output_mask[2] && bias.defined()) grad_bias = at::empty(normalized_shape, parameter);
  if (input.numel() == 0) {
    for (const Tensor* of_none : {&grad_weight, &grad_bias}) {
      if (of_none->defined()) of_none->zero_();
    }
  } else {
    const Tensor x = AsSlices(input, s), dy = AsSlices(grad_out, s);
    const Tensor dense_mean = mean.contiguous().view({s.count});
    const Tensor dense_rstd = rstd.contiguous().view({s.count});
    const Tensor gamma = weight.defined() ? weight.contiguous() : weight;

    muTensor mt_dx = DescribeDense(grad_input.view({s.count, s.length}));
    muTensor mt_dgamma = DescribeDense(grad_weight), mt_dbeta = DescribeDense(grad_bias);
    // Epsilon is in rstd already.
    CHECK_MUDNN_STATUS(
        Configure(/*eps=*/0, input.scalar_type())
            .RunBwd(GetMudnnHandle(), mt_dx, mt_dgamma, mt_dbeta, DescribeDense(dy),
                    DescribeDense(x), DescribeDense(dense_mean), DescribeDense(dense_rstd),
                    DescribeDense(gamma), InternalMemAlloc),
        "LayerNorm, gradient");
  }
  return {output_mask[0] ? grad_input : Tensor(), grad_weight, grad_bias};
}

}  // namespace at::musa
