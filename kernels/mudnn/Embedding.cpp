#include <torch_musa/ops/embedding_dense_backward_native.h>

#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

void CheckIndices(const Tensor& indices) {
  TORCH_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
              "Expected tensor for argument #2 'indices' to have one of the following scalar "
              "types: Long, Int; but got ",
              indices.scalar_type(), " instead (while checking arguments for embedding_backward)");
}

// grad_weight[w] is the sum of the gradients of the rows that looked w up: a scatter with addition
// into `grad_weight`, which comes zeroed.
void AccumulateRows(const Tensor& grad_output, const Tensor& indices, int64_t padding_idx,
                    bool scale_grad_by_freq, const Tensor& grad_weight) {
  const int64_t lookups = indices.numel(), width = grad_output.size(-1);
  if (lookups == 0 || grad_weight.numel() == 0) return;

  const Tensor rows = indices.reshape({lookups}).to(kLong);
  Tensor grad = grad_output.reshape({lookups, width});
  if (scale_grad_by_freq) {
    const TensorOptions counting = grad.options().dtype(kLong);
    const Tensor counts = at::zeros({grad_weight.size(0)}, counting)
                              .scatter_add_(0, rows, at::ones({lookups}, counting));
    grad = grad / counts.index_select(0, rows).unsqueeze(1).to(grad.scalar_type());
  }
  // The padding row is summed like the others and then cleared: cheaper than a mask over the
  // lookups.
  grad_weight.scatter_add_(0, rows.unsqueeze(1).expand({lookups, width}), grad);
  if (padding_idx >= 0) grad_weight.select(0, padding_idx).zero_();
}

}  // namespace

Tensor EmbeddingDenseBackward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                              int64_t padding_idx, bool scale_grad_by_freq) {
  CheckIndices(indices);
  const c10::musa::MUSAGuard guard(grad_output.device());
  Tensor grad_weight = at::zeros({num_weights, grad_output.size(-1)}, grad_output.options());
  AccumulateRows(grad_output, indices, padding_idx, scale_grad_by_freq, grad_weight);
  return grad_weight;
}

// The variant that torchgen makes of the functional one; upstream's computes a tensor and copies
// it.
Tensor& EmbeddingDenseBackwardOut(const Tensor& grad_output, const Tensor& indices,
                                  int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq,
                                  Tensor& out) {
  CheckIndices(indices);
  TORCH_CHECK(out.scalar_type() == grad_output.scalar_type(), "Expected out tensor to have dtype ",
              grad_output.dtype(), ", but got ", out.dtype(), " instead");
  const c10::musa::MUSAGuard guard(grad_output.device());
  native::resize_output(out, {num_weights, grad_output.size(-1)});
  out.zero_();
  AccumulateRows(grad_output, indices, padding_idx, scale_grad_by_freq, out);
  return out;
}

}  // namespace at::musa
