#include <torch_musa/ops/embedding_dense_backward_native.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {

// grad_weight[w] is the sum of the gradients of the rows that looked w up: a scatter with addition.
Tensor EmbeddingDenseBackward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                              int64_t padding_idx, bool scale_grad_by_freq) {
  TORCH_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
              "Expected tensor for argument #2 'indices' to have one of the following scalar "
              "types: Long, Int; but got ",
              indices.scalar_type(), " instead (while checking arguments for embedding_backward)");
  const c10::musa::MUSAGuard guard(grad_output.device());
  const int64_t lookups = indices.numel(), width = grad_output.size(-1);
  Tensor grad_weight = at::zeros({num_weights, width}, grad_output.options());
  if (lookups == 0 || grad_weight.numel() == 0) return grad_weight;

  const Tensor rows = indices.reshape({lookups}).to(kLong);
  Tensor grad = grad_output.reshape({lookups, width});
  if (scale_grad_by_freq) {
    const TensorOptions counting = grad.options().dtype(kLong);
    const Tensor counts =
        at::zeros({num_weights}, counting).scatter_add_(0, rows, at::ones({lookups}, counting));
    grad = grad / counts.index_select(0, rows).unsqueeze(1).to(grad.scalar_type());
  }
  // The padding row is summed like the others and then cleared: cheaper than a mask over the
  // lookups.
  grad_weight.scatter_add_(0, rows.unsqueeze(1).expand({lookups, width}), grad);
  if (padding_idx >= 0) grad_weight.select(0, padding_idx).zero_();
  return grad_weight;
}

}  // namespace at::musa
