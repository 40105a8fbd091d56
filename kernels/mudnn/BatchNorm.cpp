#include <torch_musa/ops/_batch_norm_with_update_native.h>
#include <torch_musa/ops/_native_batch_norm_legit_native.h>
#include <torch_musa/ops/batch_norm_backward_native.h>
#include <torch_musa/ops/native_batch_norm_backward_native.h>
#include <torch_musa/ops/native_batch_norm_native.h>

#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

// Six overloads, one computation: they differ in whether running statistics exist and who owns the
// outputs.

namespace at::musa {
namespace {

using ::musa::dnn::BatchNorm;

// Everything that has one value per channel; undefined where it is not given.
struct ChannelParameters {
  Tensor weight, bias, running_mean, running_var;

  std::array<const Tensor*, 4> all() const { return {&weight, &bias, &running_mean, &running_var}; }
};

Tensor OrUndefined(const std::optional<Tensor>& tensor) { return tensor.value_or(Tensor()); }

// The dtype of parameters and statistics: that of the input, or float beside a half-precision
// input.
ScalarType StatisticsType(const Tensor& input, const ChannelParameters& p) {
  CheckFloatingType(input.scalar_type(), "batch_norm");
  const bool low_precision = input.scalar_type() == kHalf || input.scalar_type() == kBFloat16;
  ScalarType dtype = input.scalar_type();
  for (const Tensor* t : p.all()) {
    if (low_precision && t->defined() && t->scalar_type() == kFloat) dtype = kFloat;
  }
  for (const Tensor* t : p.all()) {
    TORCH_CHECK(!t->defined() || t->scalar_type() == dtype,
                "batch_norm: expect parameter to have scalar type of ", dtype, ", but got ",
                t->defined() ? t->scalar_type() : dtype);
    TORCH_CHECK(!t->defined() || t->numel() == input.size(1),
                "batch_norm: expected one value per channel (", input.size(1), "), but got ",
                t->defined() ? t->sizes() : IntArrayRef());
  }
  return dtype;
}

MemoryFormat FormatOf(const Tensor& input) {
  return input.dim() == 4 ? ImageFormat(input) : MemoryFormat::Contiguous;
}

void CheckInput(const Tensor& input, const ChannelParameters& p, bool training) {
  TORCH_CHECK(!training || input.numel() > 0,
              "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  TORCH_CHECK(training || (p.running_mean.defined() && p.running_var.defined()),
              "batch_norm: running_mean and running_var must be given in evaluation mode");
}

int64_t SavedSize(const Tensor& input, bool training) { return training ? input.size(1) : 0; }

BatchNorm Configure(bool training, double eps) {
  BatchNorm op;
  CHECK_MUDNN_STATUS(op.SetMode(BatchNorm::Mode::PER_CHANNEL), "SetMode");
  CHECK_MUDNN_STATUS(op.SetEpsilon(eps), "SetEpsilon");
  CHECK_MUDNN_STATUS(op.SetTraining(training), "SetTraining");
  return op;
}

Tensor Dense(const Tensor& vector) { return vector.defined() ? vector.contiguous() : vector; }

// A running statistic: read, moved and written back.
struct RunningStatistic {
  explicit RunningStatistic(const Tensor& t) {
    if (t.defined()) dense.emplace(DenseOutput::accumulating(t));
  }
  muTensor describe() const { return dense ? dense->describe() : muTensor(); }
  void finish() const {
    if (dense) dense->finish();
  }

  std::optional<DenseOutput> dense;
};

// All outputs have their sizes. In evaluation nothing is saved.
void Normalize(const Tensor& input, const ChannelParameters& p, bool training, double momentum,
               double eps, const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd) {
  if (out.numel() == 0) return;
  const MemoryFormat format = FormatOf(input);
  const Tensor image = input.contiguous(format);
  const Tensor weight = Dense(p.weight), bias = Dense(p.bias);
  const DenseOutput result(out, format);

  muTensor mt_out = result.describe();
  const muTensor mt_image = DescribeDense(image, format);
  const muTensor mt_weight = DescribeDense(weight), mt_bias = DescribeDense(bias);
  const BatchNorm op = Configure(training, eps);
  if (!training) {
    const Tensor mean = Dense(p.running_mean), var = Dense(p.running_var);
    CHECK_MUDNN_STATUS(op.RunPure(GetMudnnHandle(), mt_out, mt_image, DescribeDense(mean),
                                  DescribeDense(var), mt_weight, mt_bias),
                       "BatchNorm");
  } else {
    const RunningStatistic running_mean(p.running_mean), running_var(p.running_var);
    const DenseOutput mean(save_mean), invstd(save_invstd);
    muTensor mt_running_mean = running_mean.describe(), mt_running_var = running_var.describe();
    muTensor mt_mean = mean.describe(), mt_invstd = invstd.describe();
    CHECK_MUDNN_STATUS(
        op.RunComposite(GetMudnnHandle(), mt_out, mt_image, mt_running_mean, mt_running_var,
                        mt_mean, mt_invstd, mt_weight, mt_bias, momentum, InternalMemAlloc),
        "BatchNorm in training");
    for (const RunningStatistic* s : {&running_mean, &running_var}) s->finish();
    for (const DenseOutput* s : {&mean, &invstd}) s->finish();
  }
  result.finish();
}

std::tuple<Tensor, Tensor, Tensor> NormalizeNew(const Tensor& input, const ChannelParameters& p,
                                                bool training, double momentum, double eps) {
  const TensorOptions saved = input.options().dtype(StatisticsType(input, p));
  CheckInput(input, p, training);
  const c10::musa::MUSAGuard guard(input.device());
  Tensor out = at::empty_like(input, input.suggest_memory_format());
  Tensor save_mean = at::empty({SavedSize(input, training)}, saved);
  Tensor save_invstd = at::empty({SavedSize(input, training)}, saved);
  Normalize(input, p, training, momentum, eps, out, save_mean, save_invstd);
  return {std::move(out), std::move(save_mean), std::move(save_invstd)};
}

void NormalizeInto(const Tensor& input, const ChannelParameters& p, bool training, double momentum,
                   double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  StatisticsType(input, p);
  CheckInput(input, p, training);
  const c10::musa::MUSAGuard guard(input.device());
  at::native::resize_output(out, input.sizes());
  at::native::resize_output(save_mean, {SavedSize(input, training)});
  at::native::resize_output(save_invstd, {SavedSize(input, training)});
  Normalize(input, p, training, momentum, eps, out, save_mean, save_invstd);
}

// batch_norm_backward takes back what _batch_norm_with_update reserved: nothing.
Tensor EmptyReserve(const Tensor& input) { return at::empty({0}, input.options().dtype(kByte)); }

}  // namespace

std::tuple<Tensor, Tensor, Tensor> NativeBatchNorm(const Tensor& input,
                                                   const std::optional<Tensor>& weight,
                                                   const std::optional<Tensor>& bias,
                                                   const std::optional<Tensor>& running_mean,
                                                   const std::optional<Tensor>& running_var,
                                                   bool training, double momentum, double eps) {
  return NormalizeNew(
      input,
      {OrUndefined(weight), OrUndefined(bias), OrUndefined(running_mean), OrUndefined(running_var)},
      training, momentum, eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> NativeBatchNormOut(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    bool training, double momentum, double eps, Tensor& out, Tensor& save_mean,
    Tensor& save_invstd) {
  NormalizeInto(
      input,
      {OrUndefined(weight), OrUndefined(bias), OrUndefined(running_mean), OrUndefined(running_var)},
      training, momentum, eps, out, save_mean, save_invstd);
  return {out, save_mean, save_invstd};
}

std::tuple<Tensor, Tensor, Tensor> NativeBatchNormLegit(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    Tensor& running_mean, Tensor& running_var, bool training, double momentum, double eps) {
  return NormalizeNew(input, {OrUndefined(weight), OrUndefined(bias), running_mean, running_var},
                      training, momentum, eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> NativeBatchNormLegitOut(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    Tensor& running_mean, Tensor& running_var, bool training, double momentum, double eps,
    Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  NormalizeInto(input, {OrUndefined(weight), OrUndefined(bias), running_mean, running_var},
                training, momentum, eps, out, save_mean, save_invstd);
  return {out, save_mean, save_invstd};
}

std::tuple<Tensor, Tensor, Tensor> NativeBatchNormLegitNoStats(const Tensor& input,
                                                               const std::optional<Tensor>& weight,
                                                               const std::optional<Tensor>& bias,
                                                               bool training, double momentum,
                                                               double eps) {
  return NormalizeNew(input, {OrUndefined(weight), OrUndefined(bias), {}, {}}, training, momentum,
                      eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> NativeBatchNormLegitNoStatsOut(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    bool training, double momentum, double eps, Tensor& out, Tensor& save_mean,
    Tensor& save_invstd) {
  NormalizeInto(input, {OrUndefined(weight), OrUndefined(bias), {}, {}}, training, momentum, eps,
                out, save_mean, save_invstd);
  return {out, save_mean, save_invstd};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> BatchNormWithUpdate(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    Tensor& running_mean, Tensor& running_var, double momentum, double eps) {
  auto [out, save_mean, save_invstd] =
      NormalizeNew(input, {OrUndefined(weight), OrUndefined(bias), running_mean, running_var},
                   /*training=*/true, momentum, eps);
  return {std::move(out), std::move(save_mean), std::move(save_invstd), EmptyReserve(input)};
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> BatchNormWithUpdateOut(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    Tensor& running_mean, Tensor& running_var, double momentum, double eps, Tensor& out,
    Tensor& save_mean, Tensor& save_invstd, Tensor& reserve) {
  NormalizeInto(input, {OrUndefined(weight), OrUndefined(bias), running_mean, running_var},
                /*training=*/true, momentum, eps, out, save_mean, save_invstd);
  at::native::resize_output(reserve, {0});
  return {out, save_mean, save_invstd, reserve};
}

std::tuple<Tensor, Tensor, Tensor> NativeBatchNormBackward(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight_opt,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  // Training reads back what the forward pass saved, evaluation the running statistics.
  const Tensor mean_in = OrUndefined(train ? save_mean : running_mean);
  const Tensor spread_in = OrUndefined(train ? save_invstd : running_var);
  TORCH_CHECK(mean_in.defined() && spread_in.defined(), "batch_norm_backward: ",
              train ? "save_mean and save_invstd" : "running_mean and running_var",
              " must be given");
  const ChannelParameters p{OrUndefined(weight_opt), {}, mean_in, spread_in};
  const TensorOptions parameter = input.options().dtype(StatisticsType(input, p));
  const c10::musa::MUSAGuard guard(input.device());

  const Tensor grad_input = at::empty_like(input, input.suggest_memory_format());
  Tensor grad_weight, grad_bias;
  if (output_mask[1]) grad_weight = at::empty({input.size(1)}, parameter);
  if (output_mask[2]) grad_bias = at::empty({input.size(1)}, parameter);
  if (input.numel() == 0) {
    for (Tensor* of_nothing : {&grad_weight, &grad_bias}) {
      if (of_nothing->defined()) of_nothing->zero_();
    }
  } else {
    const MemoryFormat format = FormatOf(input);
    const Tensor x = input.contiguous(format);
    const Tensor dy = grad_out.to(x.scalar_type()).contiguous(format);
    const Tensor mean = Dense(mean_in), spread = Dense(spread_in), gamma = Dense(p.weight);
    const DenseOutput dx(grad_input, format);

    muTensor mt_dx = dx.describe();
    muTensor mt_dmean, mt_dvar;  // nobody asks for the gradients of the statistics
    muTensor mt_dgamma = DescribeDense(grad_weight), mt_dbeta = DescribeDense(grad_bias);
    CHECK_MUDNN_STATUS(
        Configure(train, eps)
            .RunBwd(GetMudnnHandle(), mt_dx, mt_dmean, mt_dvar, mt_dgamma, mt_dbeta,
                    DescribeDense(x, format), DescribeDense(dy, format), DescribeDense(mean),
                    DescribeDense(spread), DescribeDense(gamma), InternalMemAlloc),
        "BatchNorm, gradient");
    dx.finish();
  }
  return {output_mask[0] ? grad_input : Tensor(), grad_weight, grad_bias};
}

std::tuple<Tensor, Tensor, Tensor> BatchNormBackward(
    const Tensor& grad_out, const Tensor& input, const Tensor& weight,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_var, bool update,
    double eps, std::array<bool, 3> output_mask, const Tensor&) {
  return NativeBatchNormBackward(grad_out, input, weight, running_mean, running_var, save_mean,
                                 save_var, update, eps, output_mask);
}

}  // namespace at::musa
