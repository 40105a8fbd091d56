// The gradient of unfold where windows overlap: each element adds up what the windows over it got.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/UnfoldBackward.h>

#include "kernels/ported/EachElement.cuh"

namespace at::native {
namespace {

// grad_in is (outer, extent, inner); grad is (outer, windows, inner, size) and dense.
void unfold_backward_kernel(Tensor& grad_in, const Tensor& grad_out, int64_t dim, int64_t size,
                            int64_t step) {
  dim = maybe_wrap_dim(dim, grad_in.dim());
  if (grad_in.numel() == 0 || grad_out.numel() == 0) {
    return;
  }
  const Tensor grad = grad_out.contiguous();
  const int64_t extent = grad_in.size(dim);
  const int64_t windows = grad.size(dim);
  const int64_t inner = c10::multiply_integers(grad_in.sizes().slice(dim + 1));
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
      kHalf, kBFloat16, kBool, grad.scalar_type(), "unfold_backward_cuda", [&] {
        using opmath_t = at::opmath_type<scalar_t>;
        const scalar_t* from = grad.const_data_ptr<scalar_t>();
        scalar_t* to = grad_in.mutable_data_ptr<scalar_t>();
        for_each_index(grad.device(), grad_in.numel(), [=] GPU_LAMBDA(int64_t i) {
          const int64_t column = i % inner;
          const int64_t at = i / inner % extent;
          const int64_t row = i / inner / extent;
          const int64_t first = at < size ? 0 : (at - size) / step + 1;
          const int64_t last = at / step < windows ? at / step : windows - 1;
          opmath_t sum = 0;
          for (int64_t window = first; window <= last; ++window) {
            sum += from[((row * windows + window) * inner + column) * size + at - window * step];
          }
          to[i] = static_cast<scalar_t>(sum);
        });
      });
}

}  // namespace

REGISTER_DISPATCH(unfold_backward_stub, &unfold_backward_kernel)

}  // namespace at::native
