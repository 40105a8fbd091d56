#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/AccumulateType.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CanUse32BitIndexMath.h>
#include <ATen/ops/cudnn_batch_norm.h>
#include <ATen/ops/cudnn_batch_norm_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>

#include <tuple>

#include "NormTypes.h"
#include "Results.h"

namespace musa::dnn {

using namespace internal;

namespace {

// The operand with the channels in dimension 1, whichever order its memory has.
at::Tensor image(const Call& c, const Tensor& t) {
  const at::Tensor alias = c.alias(t);
  return format(t) == Tensor::Format::NHWC && rank(t) == 4 ? alias.permute({0, 3, 1, 2}) : alias;
}

void check_mode(const std::optional<BatchNorm::Mode>& mode) {
  require(mode_of(mode) == BatchNorm::Mode::PER_CHANNEL, "PER_ACTIVATION", Status::NOT_SUPPORTED);
}

void check_images(const Tensor& a, const Tensor& b) {
  require(is_floating(type(a)), "type", Status::NOT_SUPPORTED);
  require(rank(a) >= 2, "images have a batch and a channel dimension");
  require(same_shape(a, b) && type(a) == type(b) && format(a) == format(b), "images must be alike");
  require(contiguous(a) && contiguous(b), "images must be contiguous");
}

// One value per channel; undefined where the operand is absent.
at::Tensor vector(const Call& c, const Tensor& t, const at::Tensor& image) {
  if (absent(t)) return {};
  require(numel(t) == image.size(1) && contiguous(t), "one value per channel is needed");
  require(is_floating(type(t)), "type", Status::NOT_SUPPORTED);
  return c.alias(t, {image.size(1)}, {1});
}

void store(const at::Tensor& to, const at::Tensor& from) {
  if (to.defined()) to.copy_(from);
}

// Where ATen, on a GPU, takes cuDNN's kernels. Images by channel alone, whose calls need no memory
// from forward to backward.
bool suits_cudnn(const at::Tensor& image, const at::Tensor& weight, const at::Tensor& statistic) {
  constexpr int64_t kLargestBatch = 880801;  // the most that cuDNN's kernels take in training
  return image.is_cuda() && image.dim() == 4 && image.numel() > 0 && image.is_contiguous() &&
         image.suggest_memory_format() == at::MemoryFormat::Contiguous &&
         image.size(0) <= kLargestBatch && at::native::canUse32BitIndexMath(image) &&
         (image.scalar_type() == at::kFloat || image.scalar_type() == at::kHalf) &&
         weight.defined() && weight.scalar_type() == at::kFloat &&
         statistic.scalar_type() == at::kFloat && at::globalContext().userEnabledCuDNN() &&
         at::detail::getCUDAHooks().compiledWithCuDNN();
}

at::Tensor reserved(const at::Tensor& image) {
  return at::empty({0}, image.options().dtype(at::kByte));
}

// Into the outputs, where ATen's kernels can write there.
void normalize(const at::Tensor& image, const at::Tensor& weight, const at::Tensor& bias,
               const at::Tensor& running_mean, const at::Tensor& running_var, double momentum,
               double eps, at::Tensor out, at::Tensor mean, at::Tensor invstd) {
  if (suits_cudnn(image, weight, mean) && bias.defined() && out.is_contiguous() &&
      eps >= at::detail::getCUDAHooks().batchnormMinEpsilonCuDNN()) {
    at::Tensor reserve = reserved(image);
    at::cudnn_batch_norm_out(out, mean, invstd, reserve, image, weight, bias, running_mean,
                             running_var, /*training=*/true, momentum, eps);
    return;
  }
  if (image.is_cuda() &&
      mean.scalar_type() == at::toAccumulateType(image.scalar_type(), /*is_cuda=*/true)) {
    at::native_batch_norm_out(out, mean, invstd, image, weight, bias, running_mean, running_var,
                              /*training=*/true, momentum, eps);
    return;
  }
  const auto [result, save_mean, save_invstd] = at::native_batch_norm(
      image, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
  out.copy_(result);
  mean.copy_(save_mean);
  invstd.copy_(save_invstd);
}

// Gradients of the normalized value with respect to the statistics, as if those were inputs.
void store_statistics_gradients(const at::Tensor& dmean, const at::Tensor& dvar,
                                const at::Tensor& x, const at::Tensor& dy, const at::Tensor& mean,
                                const at::Tensor& invstd, const at::Tensor& gamma) {
  if (!dmean.defined() && !dvar.defined()) return;
  std::vector<int64_t> others, per_channel(x.dim(), 1);
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != 1) others.push_back(d);
  }
  per_channel[1] = x.size(1);
  const at::Tensor scale = gamma.defined() ? gamma * invstd : invstd;
  store(dmean, -scale * dy.sum(others));
  store(dvar, scale * invstd * invstd * -0.5 * (dy * (x - mean.view(per_channel))).sum(others));
}

}  // namespace

Status BatchNorm::SetMode(Mode mode) {
  if (mode != Mode::PER_ACTIVATION && mode != Mode::PER_CHANNEL) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status BatchNorm::SetEpsilon(double epsilon) {
  epsilon_ = epsilon;
  return Status::SUCCESS;
}

Status BatchNorm::SetTraining(bool training) {
  training_ = training;
  return Status::SUCCESS;
}

Status BatchNorm::RunPure(Handle& h, Tensor& out, const Tensor& in, const Tensor& mean,
                          const Tensor& var, const Tensor& w, const Tensor& b) const {
  return Call(h, Class::BATCH_NORM, "BatchNorm::RunPure")
      .out("out", out)
      .in("in", in)
      .in("mean", mean)
      .in("var", var)
      .optional_in("w", w)
      .optional_in("b", b)
      .run([&](Call& c) -> Work {
        check_mode(mode_);
        check_images(out, in);
        check_parameter_types(in, {&w, &b, &mean, &var});
        const at::Tensor o = image(c, out), i = image(c, in);
        return [=, eps = epsilon_, weight = vector(c, w, i), bias = vector(c, b, i),
                m = vector(c, mean, i), v = vector(c, var, i)] {
          produce({o}, {i, weight, bias, m, v}, [&] {
            return std::get<0>(at::native_batch_norm(i, weight, bias, m, v, /*training=*/false,
                                                     /*momentum=*/0, eps));
          });
        };
      });
}

Status BatchNorm::RunComposite(Handle& h, Tensor& out, const Tensor& in, Tensor& running_mean,
                               Tensor& running_var, Tensor& mean, Tensor& var, const Tensor& w,
                               const Tensor& b, double momentum, const MemoryMaintainer&) const {
  return Call(h, Class::BATCH_NORM, "BatchNorm::RunComposite")
      .out("out", out)
      .in("in", in)
      .optional_out("running_mean", running_mean)
      .optional_out("running_var", running_var)
      .out("mean", mean)
      .out("var", var)
      .optional_in("w", w)
      .optional_in("b", b)
      .run([&](Call& c) -> Work {
        require(training_, "RunComposite is for training");
        check_mode(mode_);
        check_images(out, in);
        check_parameter_types(in, {&w, &b, &running_mean, &running_var});
        require(absent(running_mean) == absent(running_var), "a running mean without a variance");
        const at::Tensor o = image(c, out), i = image(c, in);
        return [=, eps = epsilon_, weight = vector(c, w, i), bias = vector(c, b, i),
                rm = vector(c, running_mean, i), rv = vector(c, running_var, i),
                m = vector(c, mean, i), v = vector(c, var, i)] {
          normalize(i, weight, bias, rm, rv, momentum, eps, o, m, v);
        };
      });
}

Status BatchNorm::RunBwd(Handle& h, Tensor& dx, Tensor& dmean, Tensor& dvar, Tensor& dgamma,
                         Tensor& dbeta, const Tensor& x, const Tensor& dy, const Tensor& mean,
                         const Tensor& var, const Tensor& gamma, const MemoryMaintainer&) const {
  return Call(h, Class::BATCH_NORM, "BatchNorm::RunBwd")
      .out("dx", dx)
      .optional_out("dmean", dmean)
      .optional_out("dvar", dvar)
      .optional_out("dgamma", dgamma)
      .optional_out("dbeta", dbeta)
      .in("x", x)
      .in("dy", dy)
      .in("mean", mean)
      .in("var", var)
      .optional_in("gamma", gamma)
      .run([&](Call& c) -> Work {
        check_mode(mode_);
        check_images(dx, x);
        check_images(dy, x);
        check_parameter_types(x, {&gamma, &mean, &var});
        const at::Tensor gx = image(c, dx), i = image(c, x), gy = image(c, dy);
        return [=, eps = epsilon_, training = training_, gm = vector(c, dmean, i),
                gv = vector(c, dvar, i), gw = vector(c, dgamma, i), gb = vector(c, dbeta, i),
                m = vector(c, mean, i), v = vector(c, var, i), weight = vector(c, gamma, i)] {
          // What ATen's forward passes save in evaluation: tensors of no elements. Its CUDA kernels
          // refuse to go without them.
          const at::Tensor none, saved = m.slice(0, 0, 0);
          const at::Tensor save_mean = saved_statistic(training ? m : saved, i);
          const at::Tensor save_invstd = saved_statistic(training ? v : saved, i);
          // Nor do those for channels_last give the gradient of a scale that is not there.
          const bool lacking = i.is_cuda() && !weight.defined() && (gw.defined() || gb.defined());
          const at::Tensor scale = lacking ? at::ones({i.size(1)}, m.options()) : weight;
          store_statistics_gradients(gm, gv, i, gy, m, training ? v : at::rsqrt(v + eps), weight);
          produce({gx, gw, gb}, {i, gy, m, v, weight}, [&] {
            if (training && suits_cudnn(i, weight, m) && gy.is_contiguous()) {
              return at::cudnn_batch_norm_backward(i, gy, weight, none, none, m, v, eps,
                                                   reserved(i));
            }
            return at::native_batch_norm_backward(
                gy, i, scale, training ? none : m, training ? none : v, save_mean, save_invstd,
                training, eps, {true, gw.defined(), gb.defined()});
          });
        };
      });
}

}  // namespace musa::dnn
