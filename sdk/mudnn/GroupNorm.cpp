#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/ops/native_group_norm.h>

#include <tuple>

#include "NormTypes.h"

namespace musa::dnn {

using namespace internal;

namespace {

// One value per channel; undefined where the operand is absent.
at::Tensor parameter(const Call& c, const Tensor& t, int64_t channels) {
  if (absent(t)) return {};
  require(numel(t) == channels && contiguous(t), "gamma and beta hold one value per channel");
  return c.alias(t, {channels}, {1});
}

}  // namespace

Status GroupNorm::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status GroupNorm::SetEpsilon(double epsilon) {
  epsilon_ = epsilon;
  return Status::SUCCESS;
}

Status GroupNorm::SetGroup(int group) {
  if (group < 1) return Status::INVALID_PARAMETER;
  group_ = group;
  return Status::SUCCESS;
}

Status GroupNorm::Run(Handle& h, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in,
                      const Tensor& gamma, const Tensor& beta) const {
  return Call(h, Class::GROUP_NORM, "GroupNorm::Run")
      .out("out", out)
      .out("mean", mean)
      .out("rstd", rstd)
      .in("in", in)
      .optional_in("gamma", gamma)
      .optional_in("beta", beta)
      .run([&](Call& c) -> Work {
        require(axis_ == 1, "axis", Status::NOT_SUPPORTED);
        require(is_floating(type(in)), "type", Status::NOT_SUPPORTED);
        require(rank(in) >= 2 && same_shape(out, in) && type(out) == type(in),
                "in and out must be alike, with a batch and a channel dimension");
        require(contiguous(in) && contiguous(out), "operands must be contiguous");
        check_parameter_types(in, {&gamma, &beta});
        const int64_t batch = dims(in)[0], channels = dims(in)[1];
        require(channels % group_ == 0, "channels do not divide into groups");
        for (const Tensor* t : {&mean, &rstd}) {
          require(numel(*t) == batch * group_ && contiguous(*t),
                  "mean and rstd hold one value per sample and group");
        }
        return [=, o = c.alias(out), i = c.alias(in), w = parameter(c, gamma, channels),
                b = parameter(c, beta, channels), group = group_, eps = epsilon_,
                m = c.alias(mean, {batch, group_}, {group_, 1}),
                r = c.alias(rstd, {batch, group_}, {group_, 1})] {
          const auto [result, save_mean, save_rstd] =
              at::native_group_norm(beside(i, w.defined() ? w : b), w, b, batch, channels,
                                    i.numel() / (batch * channels), group, eps);
          o.copy_(result);
          m.copy_(save_mean);
          r.copy_(save_rstd);
        };
      });
}

}  // namespace musa::dnn
