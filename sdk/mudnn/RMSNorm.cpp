#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>

#include "NormAxes.h"

namespace musa::dnn {

using namespace internal;

namespace {

void check_values(const Tensor& a, const Tensor& b) {
  require(is_floating(type(a)) && type(a) != Type::DOUBLE, "type", Status::NOT_SUPPORTED);
  require(same_shape(a, b) && type(a) == type(b), "operands must be alike");
  require(contiguous(a) && contiguous(b), "operands must be contiguous");
}

// The operand as (slices, elements of a slice).
at::Tensor slices(const Call& c, const Tensor& t, int64_t width) {
  return c.alias(t, {numel(t) / width, width}, {width, 1});
}

// One value per slice, as a column.
at::Tensor statistic(const Call& c, const Tensor& t, const Tensor& in, int64_t width) {
  require(numel(t) == numel(in) / width && contiguous(t), "one value per normalized slice");
  require(type(t) == type(in) || type(t) == Type::FLOAT, "a statistic has in's type or FLOAT");
  return c.alias(t, {numel(t), 1}, {1, 1});
}

// One value per element of a slice; undefined where it is absent.
at::Tensor parameter(const Call& c, const Tensor& t, const Tensor& in, int64_t width) {
  if (absent(t)) return {};
  require(numel(t) == width && contiguous(t), "gamma has the shape of a slice");
  require(type(t) == type(in), "gamma has in's type");
  return c.alias(t, {width}, {1});
}

at::Tensor wide(const at::Tensor& t) { return t.to(at::kFloat); }

}  // namespace

Status RMSNorm::SetAxis(int n, const int* axes) {
  if (n < 1 || n > Tensor::kMaxRank || axes == nullptr) return Status::INVALID_PARAMETER;
  axes_.assign(axes, axes + n);
  return Status::SUCCESS;
}

Status RMSNorm::SetEpsilon(double epsilon) {
  epsilon_ = epsilon;
  return Status::SUCCESS;
}

Status RMSNorm::SetVarMode(VarMode mode) {
  if (mode != VarMode::WELFORD && mode != VarMode::DIRECT) return Status::INVALID_PARAMETER;
  var_mode_ = mode;
  return Status::SUCCESS;
}

Status RMSNorm::Run(Handle& h, Tensor& out, Tensor& inv_var, const Tensor& in,
                    const Tensor& gamma) const {
  return Call(h, Class::RMS_NORM, "RMSNorm::Run")
      .out("out", out)
      .out("inv_var", inv_var)
      .in("in", in)
      .optional_in("gamma", gamma)
      .run([&](Call& c) -> Work {
        check_values(out, in);
        const int64_t width = c10::multiply_integers(normalized_sizes(axes_, in));
        return [o = slices(c, out, width), r = statistic(c, inv_var, in, width),
                i = slices(c, in, width), g = parameter(c, gamma, in, width), eps = epsilon_] {
          const at::Tensor x = wide(i);
          const at::Tensor scale = at::rsqrt(at::mean(x * x, {1}, /*keepdim=*/true) + eps);
          const at::Tensor normal = x * scale;
          o.copy_(g.defined() ? normal * wide(g) : normal);
          r.copy_(scale);
        };
      });
}

// With y = x * r * g and r = 1 / sqrt(mean(x ^ 2) + eps): dx = r * (dy * g - n * mean(dy * g * n)),
// where n = x * r.
Status RMSNorm::RunBwd(Handle& h, Tensor& dx, Tensor& dgamma, const Tensor& dy, const Tensor& in,
                       const Tensor& rstd, const Tensor& gamma, const MemoryMaintainer&) const {
  return Call(h, Class::RMS_NORM, "RMSNorm::RunBwd")
      .out("dx", dx)
      .optional_out("dgamma", dgamma)
      .in("dy", dy)
      .in("in", in)
      .in("rstd", rstd)
      .optional_in("gamma", gamma)
      .run([&](Call& c) -> Work {
        check_values(dx, in);
        check_values(dy, in);
        const int64_t width = c10::multiply_integers(normalized_sizes(axes_, in));
        return [gx = slices(c, dx, width), gg = parameter(c, dgamma, in, width),
                gy = slices(c, dy, width), i = slices(c, in, width),
                r = statistic(c, rstd, in, width), g = parameter(c, gamma, in, width)] {
          const at::Tensor scale = wide(r), normal = wide(i) * scale, grad = wide(gy);
          const at::Tensor scaled = g.defined() ? grad * wide(g) : grad;
          if (gg.defined()) gg.copy_(at::sum(grad * normal, {0}));
          gx.copy_((scaled - normal * at::mean(scaled * normal, {1}, /*keepdim=*/true)) * scale);
        };
      });
}

}  // namespace musa::dnn
