// Nested tensors on musa run PyTorch's own functions, which work on the buffer that holds all
// parts. Here is what those reach through a stub.

#include <ATen/native/layer_norm.h>
#include <ATen/ops/native_layer_norm.h>

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
