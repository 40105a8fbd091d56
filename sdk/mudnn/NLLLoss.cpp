#include "Internal.h"
#include "mudnn_loss.h"

#include <ATen/ops/nll_loss2d_backward.h>
#include <ATen/ops/nll_loss2d_forward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>

#include <limits>
#include <tuple>

#include "Results.h"

namespace musa::dnn {

using namespace internal;

namespace {

const char* const kModeNames[] = {"NONE", "MEAN", "SUM"};

// `scores` is the operand with a class dimension, `loss` the one that NONE gives the shape of
// target.
void check_operands(const Tensor& scores, const Tensor& loss, const Tensor& total_weight,
                    const Tensor& target, const Tensor& weight, NLLLoss::Mode mode) {
  require(rank(scores) == 2 || rank(scores) == 4, "scores have rank 2 or 4");
  require(is_floating(type(scores)), "type", Status::NOT_SUPPORTED);
  require(type(loss) == type(scores) && type(total_weight) == type(scores),
          "operands must have one type");
  require(type(target) == Type::INT64, "target must be INT64", Status::NOT_SUPPORTED);
  require(contiguous(scores) && contiguous(loss) && contiguous(target),
          "operands must be contiguous");
  std::vector<int64_t> expected(dims(scores).begin(), dims(scores).end());
  expected.erase(expected.begin() + 1);
  require(dims(target).equals(expected), "target has the shape of the scores without the classes");
  require(mode == NLLLoss::Mode::NONE ? dims(loss).equals(expected) : numel(loss) == 1,
          "loss does not fit the reduction");
  require(numel(total_weight) == 1, "total_weight holds one element");
  if (!absent(weight)) {
    require(numel(weight) == dims(scores)[1] && contiguous(weight) && type(weight) == type(scores),
            "weight holds one value per class");
  }
}

at::Tensor class_weights(const Call& c, const Tensor& weight) {
  return absent(weight) ? at::Tensor() : c.alias(weight, {numel(weight)}, {1});
}

// The loss as ATen shapes it: without dimensions when it is reduced.
at::Tensor loss_alias(const Call& c, const Tensor& loss, NLLLoss::Mode mode) {
  return mode == NLLLoss::Mode::NONE ? c.alias(loss) : c.alias(loss, {}, {});
}

}  // namespace

Status NLLLoss::SetReductionMode(Mode mode) {
  if (mode < Mode::NONE || mode > Mode::SUM) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status NLLLoss::SetIgnoreIndex(int64_t index) {
  ignore_index_ = index;
  return Status::SUCCESS;
}

// The modes are numbered as ATen numbers reductions.
Status NLLLoss::Run(Handle& h, Tensor& out, Tensor& total_weight, const Tensor& in,
                    const Tensor& target, const Tensor& weight, const MemoryMaintainer&) const {
  return Call(h, Class::NLL_LOSS, "NLLLoss::Run", name_of(mode_, kModeNames))
      .out("out", out)
      .out("total_weight", total_weight)
      .in("in", in)
      .in("target", target)
      .optional_in("weight", weight)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(in, out, total_weight, target, weight, mode);
        return [=, o = loss_alias(c, out, mode), total = c.alias(total_weight, {}, {}),
                i = c.alias(in), t = c.alias(target), w = class_weights(c, weight),
                reduction = static_cast<int64_t>(mode), ignore = ignore_index_] {
          const auto [loss, sum] = i.dim() == 2
                                       ? at::nll_loss_forward(i, t, w, reduction, ignore)
                                       : at::nll_loss2d_forward(i, t, w, reduction, ignore);
          o.copy_(loss);
          // Without a reduction nobody divides by it, and not every device writes it: nobody may
          // count on it.
          if (reduction == static_cast<int64_t>(Mode::NONE)) {
            total.fill_(std::numeric_limits<double>::quiet_NaN());
          } else {
            total.copy_(sum);
          }
        };
      });
}

Status NLLLoss::RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& target,
                       const Tensor& weight, const Tensor& total_weight,
                       const MemoryMaintainer&) const {
  return Call(h, Class::NLL_LOSS, "NLLLoss::RunBwd", name_of(mode_, kModeNames))
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .in("target", target)
      .optional_in("weight", weight)
      .in("total_weight", total_weight)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(grad_in, grad_out, total_weight, target, weight, mode);
        return [=, gi = c.alias(grad_in), go = loss_alias(c, grad_out, mode), t = c.alias(target),
                w = class_weights(c, weight), total = c.alias(total_weight, {}, {}),
                reduction = static_cast<int64_t>(mode), ignore = ignore_index_] {
          // Of the scores only the shape is read.
          produce({gi}, {go, t, w, total}, [&] {
            return gi.dim() == 2 ? at::nll_loss_backward(go, gi, t, w, reduction, ignore, total)
                                 : at::nll_loss2d_backward(go, gi, t, w, reduction, ignore, total);
          });
        };
      });
}

}  // namespace musa::dnn
