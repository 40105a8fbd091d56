#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/AccumulateType.h>
#include <ATen/native/layer_norm.h>

#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>

#include <tuple>

#include "NormAxes.h"
#include "NormTypes.h"

namespace musa::dnn {

using namespace internal;

namespace {

void check_values(const Tensor& a, const Tensor& b) {
  require(is_floating(type(a)), "type", Status::NOT_SUPPORTED);
  require(same_shape(a, b) && type(a) == type(b), "operands must be alike");
  require(contiguous(a) && contiguous(b), "operands must be contiguous");
}

// A parameter in the shape of one slice; undefined where it is absent.
at::Tensor parameter(const Call& c, const Tensor& t, at::IntArrayRef sizes) {
  if (absent(t)) return {};
  require(numel(t) == c10::multiply_integers(sizes) && contiguous(t),
          "gamma and beta have the shape of a slice");
  return c.alias(t, {numel(t)}, {1}).view(sizes);
}

// One value per slice, in the shape ATen gives to statistics.
at::Tensor statistic(const Call& c, const Tensor& t, const Tensor& in, size_t axes) {
  std::vector<int64_t> sizes(dims(in).begin(), dims(in).end());
  std::fill(sizes.end() - static_cast<int64_t>(axes), sizes.end(), 1);
  require(numel(t) == c10::multiply_integers(sizes) && contiguous(t),
          "mean and rstd hold one value per slice");
  return c.alias(t, {numel(t)}, {1}).view(sizes);
}

void store(const at::Tensor& to, const at::Tensor& from) {
  if (to.defined()) to.copy_(from);
}

// ATen's operators return tensors of their own; its kernels write into the caller's memory. Where
// the build says how PyTorch's dispatcher of kernels is called (mudnn.cmake), they can be.
#ifdef HAVE_AVX2_CPU_DEFINITION
constexpr bool kKernelsInReach = true;
#else
constexpr bool kKernelsInReach = false;
#endif

// The type of ATen's statistics: on the CPU the parameters', on a GPU what sums are in.
at::ScalarType statistics_type(const at::Tensor& in, const at::Tensor& weight) {
  if (!in.is_cpu()) return at::toAccumulateType(in.scalar_type(), in.device().type());
  return weight.defined() ? weight.scalar_type() : in.scalar_type();
}

void normalize(const at::Tensor& in, at::IntArrayRef sizes, const at::Tensor& weight,
               const at::Tensor& bias, double eps, at::Tensor out, at::Tensor mean,
               at::Tensor rstd) {
  if constexpr (kKernelsInReach) {
    const auto dtype = statistics_type(in, weight);
    if (in.numel() > 0 && in.scalar_type() == out.scalar_type() && mean.scalar_type() == dtype &&
        rstd.scalar_type() == dtype) {
      at::native::LayerNormKernel(in.device().type(), apart(in, out), weight, bias, mean.numel(),
                                  c10::multiply_integers(sizes), eps, &out, &mean, &rstd);
      return;
    }
  }
  const auto [result, save_mean, save_rstd] = at::native_layer_norm(in, sizes, weight, bias, eps);
  out.copy_(result);
  mean.copy_(save_mean);
  rstd.copy_(save_rstd);
}

// `weight` is not absent; grad_weight and grad_bias may be.
void differentiate(const at::Tensor& grad, const at::Tensor& in, at::IntArrayRef sizes,
                   const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                   at::Tensor grad_in, at::Tensor grad_weight, at::Tensor grad_bias) {
  if constexpr (kKernelsInReach) {
    const auto fits = [&](const at::Tensor& of) {
      return !of.defined() || of.scalar_type() == weight.scalar_type();
    };
    if (in.numel() > 0 && in.scalar_type() == grad_in.scalar_type() && fits(grad_weight) &&
        fits(grad_bias)) {
      at::native::LayerNormBackwardKernel(
          in.device().type(), apart(grad, grad_in), apart(in, grad_in), mean, rstd, weight,
          mean.numel(), c10::multiply_integers(sizes), &grad_in, &grad_weight, &grad_bias);
      return;
    }
  }
  const auto [from_in, from_weight, from_bias] =
      at::native_layer_norm_backward(grad, in, sizes, mean, rstd, weight, weight,
                                     {true, grad_weight.defined(), grad_bias.defined()});
  grad_in.copy_(from_in);
  store(grad_weight, from_weight);
  store(grad_bias, from_bias);
}

}  // namespace

Status LayerNorm::SetAxis(int n, const int* axes) {
  if (n < 1 || n > Tensor::kMaxRank || axes == nullptr) return Status::INVALID_PARAMETER;
  axes_.assign(axes, axes + n);
  return Status::SUCCESS;
}

Status LayerNorm::SetEpsilon(double epsilon) {
  epsilon_ = epsilon;
  return Status::SUCCESS;
}

Status LayerNorm::SetVarMode(VarMode mode) {
  if (mode != VarMode::WELFORD && mode != VarMode::DIRECT) return Status::INVALID_PARAMETER;
  var_mode_ = mode;
  return Status::SUCCESS;
}

Status LayerNorm::Run(Handle& h, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in,
                      const Tensor& gamma, const Tensor& beta, const MemoryMaintainer&) const {
  return Call(h, Class::LAYER_NORM, "LayerNorm::Run")
      .out("out", out)
      .out("mean", mean)
      .out("rstd", rstd)
      .in("in", in)
      .optional_in("gamma", gamma)
      .optional_in("beta", beta)
      .run([&](Call& c) -> Work {
        check_values(out, in);
        require(absent(gamma) == absent(beta), "gamma without beta", Status::NOT_SUPPORTED);
        check_parameter_types(in, {&gamma, &beta});
        const auto sizes = normalized_sizes(axes_, in);
        return [=, eps = epsilon_, o = c.alias(out), i = c.alias(in),
                m = statistic(c, mean, in, axes_.size()), r = statistic(c, rstd, in, axes_.size()),
                w = parameter(c, gamma, sizes), b = parameter(c, beta, sizes)] {
          normalize(beside(i, w), sizes, w, b, eps, o, m, r);
        };
      });
}

Status LayerNorm::RunBwd(Handle& h, Tensor& dx, Tensor& dgamma, Tensor& dbeta, const Tensor& dy,
                         const Tensor& x, const Tensor& mean, const Tensor& rstd,
                         const Tensor& gamma, const MemoryMaintainer&) const {
  return Call(h, Class::LAYER_NORM, "LayerNorm::RunBwd")
      .out("dx", dx)
      .optional_out("dgamma", dgamma)
      .optional_out("dbeta", dbeta)
      .in("dy", dy)
      .in("x", x)
      .in("mean", mean)
      .in("rstd", rstd)
      .optional_in("gamma", gamma)
      .run([&](Call& c) -> Work {
        check_values(dx, x);
        check_values(dy, x);
        check_parameter_types(x, {&gamma, &mean, &rstd});
        const auto sizes = normalized_sizes(axes_, x);
        return [=, gx = c.alias(dx), gy = c.alias(dy), i = c.alias(x),
                m = statistic(c, mean, x, axes_.size()), r = statistic(c, rstd, x, axes_.size()),
                gw = parameter(c, dgamma, sizes), gb = parameter(c, dbeta, sizes),
                w = parameter(c, gamma, sizes)] {
          // ATen reads off gamma and beta which gradients there are: without them, ones have the
          // same effect.
          const at::Tensor weight = w.defined() ? w : at::ones(sizes, i.options().dtype(m.dtype()));
          const at::Tensor values = beside(i, weight);
          differentiate(beside(gy, weight), values, sizes, saved_statistic(m, values),
                        saved_statistic(r, values), weight, gx, gw, gb);
        };
      });
}

}  // namespace musa::dnn
