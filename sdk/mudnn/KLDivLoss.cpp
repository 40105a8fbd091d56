#include "Internal.h"
#include "mudnn_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/xlogy.h>

namespace musa::dnn {

using namespace internal;

namespace {

const char* const kModeNames[] = {"NONE", "MEAN", "SUM"};

void check_operands(const Tensor& in, const Tensor& target, const Tensor& loss,
                    KLDivLoss::Mode mode) {
  require(is_floating(type(in)), "type", Status::NOT_SUPPORTED);
  require(type(in) == type(target) && type(in) == type(loss), "operands must have one type");
  require(same_shape(in, target), "in and target must have one shape");
  require(contiguous(in) && contiguous(target) && contiguous(loss), "operands must be contiguous");
  require(mode == KLDivLoss::Mode::NONE ? same_shape(loss, in) : numel(loss) == 1,
          "loss does not fit the reduction");
}

at::Tensor wide(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat);
}

at::Tensor loss_alias(const Call& c, const Tensor& loss, KLDivLoss::Mode mode) {
  return mode == KLDivLoss::Mode::NONE ? c.alias(loss) : c.alias(loss, {}, {});
}

}  // namespace

Status KLDivLoss::SetReductionMode(Mode mode) {
  if (mode < Mode::NONE || mode > Mode::SUM) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status KLDivLoss::SetLogTarget(bool log_target) {
  log_target_ = log_target;
  return Status::SUCCESS;
}

Status KLDivLoss::Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& target,
                      const MemoryMaintainer&) const {
  return Call(h, Class::KL_DIV_LOSS, "KLDivLoss::Run", name_of(mode_, kModeNames))
      .out("out", out)
      .in("in", in)
      .in("target", target)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(in, target, out, mode);
        return [o = loss_alias(c, out, mode), i = c.alias(in), t = c.alias(target), mode = mode,
                log_target = log_target_] {
          const at::Tensor x = wide(i), y = wide(t);
          const at::Tensor each = log_target ? at::exp(y) * (y - x) : at::xlogy(y, y) - y * x;
          o.copy_(mode == Mode::NONE ? each : mode == Mode::SUM ? at::sum(each) : at::mean(each));
        };
      });
}

Status KLDivLoss::RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& in,
                         const Tensor& target) const {
  return Call(h, Class::KL_DIV_LOSS, "KLDivLoss::RunBwd", name_of(mode_, kModeNames))
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .in("in", in)
      .in("target", target)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(in, target, grad_out, mode);
        require(same_shape(grad_in, in) && type(grad_in) == type(in), "grad_in must be like in");
        return [gi = c.alias(grad_in), go = loss_alias(c, grad_out, mode), t = c.alias(target),
                mean = mode == Mode::MEAN, log_target = log_target_] {
          const at::Tensor y = wide(t);
          const at::Tensor grad = (log_target ? at::exp(y) : y) * wide(go);
          gi.copy_(mean ? grad / -static_cast<double>(y.numel()) : -grad);
        };
      });
}

}  // namespace musa::dnn
