#include <torch_musa/ops/nll_loss2d_backward_native.h>
#include <torch_musa/ops/nll_loss2d_forward_native.h>
#include <torch_musa/ops/nll_loss_backward_native.h>
#include <torch_musa/ops/nll_loss_forward_native.h>

#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

using ::musa::dnn::NLLLoss;

NLLLoss Configure(int64_t reduction, int64_t ignore_index) {
  NLLLoss op;
  const auto mode = reduction == Reduction::None   ? NLLLoss::Mode::NONE
                    : reduction == Reduction::Mean ? NLLLoss::Mode::MEAN
                                                   : NLLLoss::Mode::SUM;
  CHECK_MUDNN_STATUS(op.SetReductionMode(mode), "SetReductionMode");
  CHECK_MUDNN_STATUS(op.SetIgnoreIndex(ignore_index), "SetIgnoreIndex");
  return op;
}

void CheckTypes(const Tensor& self, const Tensor& weight, const char* op) {
  CheckFloatingType(self.scalar_type(), op);
  TORCH_CHECK(!weight.defined() || weight.scalar_type() == self.scalar_type(),
              "expected scalar type ", self.scalar_type(), " but found ",
              weight.defined() ? weight.scalar_type() : self.scalar_type());
}

// muDNN counts classes in INT64; torch allows bytes.
Tensor Targets(const Tensor& target) {
  TORCH_CHECK(target.scalar_type() == kLong || target.scalar_type() == kByte,
              "expected target dtype to be Long or Byte, but got ", target.scalar_type());
  return target.to(kLong).contiguous();
}

Tensor Dense(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

// self is (N, C) or (N, C, H, W); output and total_weight have their sizes.
void Loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
          int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  if (self.numel() == 0) {  // no target to average over
    if (reduction == Reduction::Mean) {
      output.fill_(std::numeric_limits<double>::quiet_NaN());
    } else {
      output.zero_();
    }
    total_weight.zero_();
    return;
  }
  const Tensor scores = self.contiguous(), classes = Targets(target), weights = Dense(weight);
  const DenseOutput loss(output), total(total_weight);

  muTensor mt_loss = loss.describe(), mt_total = total.describe();
  CHECK_MUDNN_STATUS(Configure(reduction, ignore_index)
                         .Run(GetMudnnHandle(), mt_loss, mt_total, DescribeDense(scores),
                              DescribeDense(classes), DescribeDense(weights), InternalMemAlloc),
                     "NLLLoss");
  loss.finish();
  // Unreduced losses have no total: muDNN may leave anything there.
  if (reduction == Reduction::None) {
    total_weight.zero_();
  } else {
    total.finish();
  }
}

void LossBackward(const Tensor& grad_output, const Tensor& target, const Tensor& weight,
                  int64_t reduction, int64_t ignore_index, const Tensor& total_weight,
                  const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const Tensor grad = grad_output.contiguous(), classes = Targets(target), weights = Dense(weight);
  const Tensor total = total_weight.contiguous();
  const DenseOutput result(grad_input);
  result.tensor().zero_();  // (?) only the classes aimed at may be written

  muTensor mt_result = result.describe();
  CHECK_MUDNN_STATUS(
      Configure(reduction, ignore_index)
          .RunBwd(GetMudnnHandle(), mt_result, DescribeDense(grad), DescribeDense(classes),
                  DescribeDense(weights), DescribeDense(total), InternalMemAlloc),
      "NLLLoss, gradient");
  result.finish();
}

// A single sample is a batch of one. Its loss is the sum, and only sums come with the weight that
// went into them.
Tensor WithBatch(const Tensor& scores) { return scores.dim() == 1 ? scores.unsqueeze(0) : scores; }

int64_t ReductionOfBatch(const Tensor& scores, int64_t reduction) {
  return scores.dim() == 1 && reduction == Reduction::None ? int64_t{Reduction::Sum} : reduction;
}

void CheckSpatial(const Tensor& self, const Tensor& target, const Tensor& weight) {
  TORCH_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of "
              "dimension: ",
              target.dim());
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ",
              self.dim());
  TORCH_CHECK(!weight.defined() || weight.numel() == self.size(1),
              "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) &&
                  self.size(3) == target.size(2),
              "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
  TORCH_CHECK(target.scalar_type() == kLong, "expected scalar type Long but found ",
              target.scalar_type());
  CheckTypes(self, weight, "nll_loss2d");
}

// The sizes of the loss of (N, C, H, W) scores.
IntArrayRef SpatialLossSizes(const Tensor& target, int64_t reduction) {
  return reduction == Reduction::None ? target.sizes() : IntArrayRef();
}

void CheckSpatialGradient(const Tensor& grad_output, const Tensor& target,
                          const Tensor& total_weight, int64_t reduction) {
  TORCH_CHECK(total_weight.numel() == 1,
              "expected total_weight to be a single element tensor, got: ", total_weight.sizes(),
              " (", total_weight.numel(), " elements)");
  if (reduction == Reduction::None) {
    TORCH_CHECK(grad_output.sizes() == target.sizes(), "expected grad_output of sizes ",
                target.sizes(), ", but got ", grad_output.sizes());
  } else {
    TORCH_CHECK(grad_output.numel() == 1,
                "Expected a single element grad_output tensor, but got: ", grad_output.sizes());
  }
}

}  // namespace

TORCH_IMPL_FUNC(NllLossForwardOut)
(const Tensor& self, const Tensor& target, OptionalTensorRef weight, int64_t reduction,
 int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  CheckTypes(self, *weight, "nll_loss");
  Loss(WithBatch(self), target.view({-1}), *weight, ReductionOfBatch(self, reduction), ignore_index,
       output, total_weight);
}

TORCH_IMPL_FUNC(NllLossBackwardOut)
(const Tensor& grad_output, const Tensor& self, const Tensor& target, OptionalTensorRef weight,
 int64_t reduction, int64_t ignore_index, const Tensor& total_weight, const Tensor& grad_input) {
  CheckTypes(self, *weight, "nll_loss_backward");
  LossBackward(grad_output, target.view({-1}), *weight, ReductionOfBatch(self, reduction),
               ignore_index, total_weight, WithBatch(grad_input));
}

std::tuple<Tensor&, Tensor&> NllLoss2dForwardOut(const Tensor& self, const Tensor& target,
                                                 const std::optional<Tensor>& weight_opt,
                                                 int64_t reduction, int64_t ignore_index,
                                                 Tensor& output, Tensor& total_weight) {
  const Tensor weight = weight_opt.value_or(Tensor());
  CheckSpatial(self, target, weight);
  const c10::musa::MUSAGuard guard(self.device());
  at::native::resize_output(output, SpatialLossSizes(target, reduction));
  at::native::resize_output(total_weight, {});
  Loss(self, target, weight, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

std::tuple<Tensor, Tensor> NllLoss2dForward(const Tensor& self, const Tensor& target,
                                            const std::optional<Tensor>& weight_opt,
                                            int64_t reduction, int64_t ignore_index) {
  const Tensor weight = weight_opt.value_or(Tensor());
  CheckSpatial(self, target, weight);
  const c10::musa::MUSAGuard guard(self.device());
  Tensor output = at::empty(SpatialLossSizes(target, reduction), self.options());
  Tensor total_weight = at::empty({}, self.options());
  Loss(self, target, weight, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

Tensor& NllLoss2dBackwardOut(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                             const std::optional<Tensor>& weight_opt, int64_t reduction,
                             int64_t ignore_index, const Tensor& total_weight, Tensor& grad_input) {
  const Tensor weight = weight_opt.value_or(Tensor());
  CheckSpatial(self, target, weight);
  CheckSpatialGradient(grad_output, target, total_weight, reduction);
  const c10::musa::MUSAGuard guard(self.device());
  grad_input.resize_(self.sizes());  // without a warning, as on the CPU
  LossBackward(grad_output, target, weight, reduction, ignore_index, total_weight, grad_input);
  return grad_input;
}

Tensor NllLoss2dBackward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         const std::optional<Tensor>& weight_opt, int64_t reduction,
                         int64_t ignore_index, const Tensor& total_weight) {
  const Tensor weight = weight_opt.value_or(Tensor());
  CheckSpatial(self, target, weight);
  CheckSpatialGradient(grad_output, target, total_weight, reduction);
  const c10::musa::MUSAGuard guard(self.device());
  Tensor grad_input = at::empty(self.sizes(), self.options());
  LossBackward(grad_output, target, weight, reduction, ignore_index, total_weight, grad_input);
  return grad_input;
}

}  // namespace at::musa
