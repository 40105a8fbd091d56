#include "Internal.h"
#include "mudnn_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace musa::dnn {

using namespace internal;

namespace {

using Mode = CrossEntropyLoss::ReductionMode;

const char* const kModeNames[] = {"NONE", "MEAN", "SUM"};

void check_operands(const Tensor& in, const Tensor& loss, const Tensor& target,
                    const Tensor& weight, Mode mode) {
  require(is_floating(type(in)), "type", Status::NOT_SUPPORTED);
  require(rank(in) == 2 && rank(target) == 1, "in is (N, C), target (N)", Status::NOT_SUPPORTED);
  require(dims(target)[0] == dims(in)[0], "in is (N, C), target (N)");
  require(type(target) == Type::INT64, "target must be INT64", Status::NOT_SUPPORTED);
  require(type(loss) == type(in), "loss must have the type of in");
  require(contiguous(in) && contiguous(loss) && contiguous(target), "operands must be contiguous");
  require(mode == Mode::NONE ? dims(loss).equals(dims(target)) : numel(loss) == 1,
          "loss does not fit the reduction");
  if (!absent(weight)) {
    require(numel(weight) == dims(in)[1] && contiguous(weight) && type(weight) == type(in),
            "weight holds one value per class");
  }
}

at::Tensor wide(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat);
}

// What forward and backward compute from: everything in the wide type.
struct Terms {
  at::Tensor log_p;    // (N, C)
  at::Tensor weight;   // (C)
  at::Tensor counted;  // (N, 1), BOOL: targets that are not ignored
  at::Tensor target;   // (N, 1), 0 where it is ignored
  at::Tensor share;    // (N, 1): the weight of the target, 0 where it is ignored
};

Terms terms(const at::Tensor& in, const at::Tensor& target, const at::Tensor& weight,
            int64_t ignored) {
  Terms t;
  const at::Tensor x = wide(in);
  t.log_p = at::_log_softmax(x, 1, /*half_to_float=*/false);
  t.weight = weight.defined() ? wide(weight) : at::ones({x.size(1)}, x.options());
  t.counted = target.ne(ignored).unsqueeze(1);
  t.target = at::where(t.counted, target.unsqueeze(1), at::zeros_like(target).unsqueeze(1));
  t.share = t.weight.expand_as(x).gather(1, t.target) * t.counted;
  return t;
}

}  // namespace

Status CrossEntropyLoss::SetReductionMode(ReductionMode mode) {
  if (mode < Mode::NONE || mode > Mode::SUM) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status CrossEntropyLoss::SetIgnoreIndex(int64_t index) {
  ignore_index_ = index;
  return Status::SUCCESS;
}

Status CrossEntropyLoss::SetLabelSmoothing(double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1)) return Status::INVALID_PARAMETER;
  label_smoothing_ = smoothing;
  return Status::SUCCESS;
}

// Of sample i with target t: -(1 - s) * w[t] * log p[t] - s / C * sum over c of w[c] * log p[c].
Status CrossEntropyLoss::Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& target,
                             const Tensor& weight, const MemoryMaintainer&) const {
  return Call(h, Class::CROSS_ENTROPY_LOSS, "CrossEntropyLoss::Run", name_of(mode_, kModeNames))
      .out("out", out)
      .in("in", in)
      .in("target", target)
      .optional_in("weight", weight)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(in, out, target, weight, mode);
        const at::Tensor w = absent(weight) ? at::Tensor() : c.alias(weight, {numel(weight)}, {1});
        return [w, o = mode == Mode::NONE ? c.alias(out) : c.alias(out, {}, {}), i = c.alias(in),
                t = c.alias(target), mode, smoothing = label_smoothing_, ignored = ignore_index_] {
          const Terms x = terms(i, t, w, ignored);
          at::Tensor each = x.log_p.gather(1, x.target) * x.share * (smoothing - 1);
          if (smoothing > 0) {
            const at::Tensor all = at::sum(x.log_p * x.weight, {1}, /*keepdim=*/true) * x.counted;
            each = each - all * (smoothing / static_cast<double>(i.size(1)));
          }
          if (mode == Mode::NONE) {
            o.copy_(each.squeeze(1));
          } else {
            o.copy_(mode == Mode::SUM ? at::sum(each) : at::sum(each) / at::sum(x.share));
          }
        };
      });
}

Status CrossEntropyLoss::RunBwd(Handle& h, Tensor& grad_in, const Tensor& in,
                                const Tensor& grad_out, const Tensor& target, const Tensor& weight,
                                const MemoryMaintainer&) const {
  return Call(h, Class::CROSS_ENTROPY_LOSS, "CrossEntropyLoss::RunBwd", name_of(mode_, kModeNames))
      .out("grad_in", grad_in)
      .in("in", in)
      .in("grad_out", grad_out)
      .in("target", target)
      .optional_in("weight", weight)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(in, grad_out, target, weight, mode);
        require(same_shape(grad_in, in) && type(grad_in) == type(in), "grad_in must be like in");
        const at::Tensor w = absent(weight) ? at::Tensor() : c.alias(weight, {numel(weight)}, {1});
        return [w, gi = c.alias(grad_in), i = c.alias(in),
                go = mode == Mode::NONE ? c.alias(grad_out) : c.alias(grad_out, {}, {}),
                t = c.alias(target), mode, smoothing = label_smoothing_, ignored = ignore_index_] {
          const Terms x = terms(i, t, w, ignored);
          at::Tensor grad = mode == Mode::NONE ? wide(go).unsqueeze(1) : wide(go);
          if (mode == Mode::MEAN) grad = grad / at::sum(x.share);
          const at::Tensor p = at::exp(x.log_p);
          const at::Tensor hit = at::zeros_like(p).scatter(1, x.target, 1);
          at::Tensor result = (p - hit) * x.share * (1 - smoothing);
          if (smoothing > 0) {
            const at::Tensor all = p * at::sum(x.weight) - x.weight;
            result = result + all * x.counted * (smoothing / static_cast<double>(i.size(1)));
          }
          gi.copy_(result * grad);
        };
      });
}

}  // namespace musa::dnn
