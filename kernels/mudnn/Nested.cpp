// Nested tensors on musa run PyTorch's own functions, which work on the buffer that holds all
// parts. Here is what those reach through a stub, and in place of the ones that are the CPU's
// alone: these read the buffer from the host.

#include <torch_musa/ops/_nested_sum_backward_native.h>
#include <torch_musa/ops/sum_native.h>

#include <ATen/NestedTensorImpl.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/layer_norm.h>
#include <ATen/native/nested/NestedTensorUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/native_layer_norm.h>

#include <vector>

#include "torch_musa/csrc/aten/utils/Utils.h"

namespace at::native {
namespace {

/// Y = (X - mean) * rstd * gamma + beta over rows of N elements, M of them.
void nested_layer_norm_kernel(const Tensor& X, const Tensor& gamma, const Tensor& beta, int64_t M,
                              int64_t N, double eps, Tensor* Y, Tensor* mean, Tensor* rstd) {
  const auto flat = [N](const Tensor& tensor) {
    return tensor.defined() ? tensor.reshape({N}) : tensor;
  };
  const auto [out, means, deviations] =
      at::native_layer_norm(X.reshape({M, N}), IntArrayRef(N), flat(gamma), flat(beta), eps);
  Y->copy_(out.view(Y->sizes()));
  mean->copy_(means.view(mean->sizes()));
  rstd->copy_(deviations.view(rstd->sizes()));
}

}  // namespace

REGISTER_MUSA_DISPATCH(LayerNormKernel, &nested_layer_norm_kernel)

}  // namespace at::native

namespace at::musa {
namespace {

// Neighbours in the buffer: `count` rows along the last dimension, of one length.
struct Rows {
  int64_t count, length;
};

// The rows of all parts, in the order of the buffer. `sizes` (parts, dims) is on the CPU. Parts
// that differ in other dimensions only, which is the usual case, are one entry.
std::vector<Rows> rows_of(const Tensor& sizes) {
  std::vector<Rows> all;
  const auto size = sizes.accessor<int64_t, 2>();
  for (int64_t part = 0; part < size.size(0); ++part) {
    const int64_t last = size.size(1) - 1, length = size[part][last];
    int64_t count = 1;
    for (int64_t d = 0; d < last; ++d) count *= size[part][d];
    if (!all.empty() && all.back().length == length) {
      all.back().count += count;
    } else {
      all.push_back({count, length});
    }
  }
  return all;
}

}  // namespace

Tensor NestedSumDim(const Tensor& self, OptionalIntArrayRef dims, bool keepdim,
                    std::optional<ScalarType> dtype) {
  TORCH_CHECK(dims && dims->size() == 1,
              "NestedTensor only allows reduction of a single dimension for now.");
  const int64_t dim = maybe_wrap_dim(dims->front(), self.dim());
  TORCH_CHECK(dim == self.dim() - 1,
              "NestedTensor can only be reduced across the last dimension for now, got dimension ",
              dim, " instead.");
  TORCH_CHECK(keepdim, "NestedTensor always requires keepdim=True for now.");
  TORCH_CHECK(!dtype, "NestedTensor does not support dtype argument for now.");
  const auto* nested = native::get_nested_tensor_impl(self);
  TORCH_CHECK(native::nested_tensor_impl_is_contiguous(nested),
              "NestedTensor does not support reductions when the input is noncontiguous for now.");
  if (nested->size(0) == 0) return self;

  const Tensor buffer = nested->get_buffer(), sizes = nested->get_nested_sizes();
  std::vector<Tensor> sums;
  int64_t start = 0;
  for (const auto& [count, length] : rows_of(sizes)) {
    const Tensor rows = buffer.narrow(0, start, count * length).view({count, length});
    sums.push_back(rows.sum(IntArrayRef{1}, /*keepdim=*/false, buffer.scalar_type()));
    start += count * length;
  }
  Tensor kept = sizes.clone();
  kept.select(1, -1).fill_(1);
  return native::wrap_buffer(at::cat(sums), kept);
}

Tensor NestedSumBackward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef /*dims*/,
                         bool /*keepdim*/) {
  const Tensor dense = grad.contiguous();
  const Tensor buffer = native::get_nested_tensor_impl(dense)->get_buffer();
  const Tensor sizes = native::get_nested_tensor_impl(self)->get_nested_sizes();
  std::vector<Tensor> spread;
  int64_t start = 0;
  for (const auto& [count, length] : rows_of(sizes)) {
    const Tensor rows = buffer.narrow(0, start, count).view({count, 1});
    spread.push_back(rows.expand({count, length}).reshape({-1}));
    start += count;
  }
  if (spread.empty()) return self;
  return native::wrap_buffer(at::cat(spread), sizes);
}

}  // namespace at::musa
