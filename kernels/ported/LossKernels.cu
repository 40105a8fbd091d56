// Elementwise parts of mse_loss and smooth_l1_loss and of their gradients, hung on PyTorch's stubs;
// the reductions around them are PyTorch's.
#include <ATen/Dispatch.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

namespace at::native {
namespace {

void mse_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "mse_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t self, scalar_t target) -> scalar_t {
      const scalar_t difference = self - target;
      return difference * difference;
    });
  });
}

// Inputs: self, target, grad. `factor` is 2, over the number of elements for the mean.
void mse_backward_kernel(TensorIterator& iter, const Scalar& factor) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "mse_backward_cuda", [&] {
    const auto scale = factor.to<scalar_t>();
    gpu_kernel(iter, [scale] GPU_LAMBDA(scalar_t self, scalar_t target, scalar_t grad) -> scalar_t {
      return scale * (self - target) * grad;
    });
  });
}

// Quadratic within beta of the target, linear beyond.
void smooth_l1_kernel(TensorIteratorBase& iter, double beta) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "smooth_l1_cuda", [&] {
    const auto limit = static_cast<scalar_t>(beta);
    gpu_kernel(iter, [limit] GPU_LAMBDA(scalar_t self, scalar_t target) -> scalar_t {
      const scalar_t difference = self > target ? self - target : target - self;
      return difference < limit ? scalar_t(0.5) * difference * difference / limit
                                : difference - scalar_t(0.5) * limit;
    });
  });
}

// Inputs: self, target, grad. `factor` is 1, over the number of elements for the mean.
void smooth_l1_backward_kernel(TensorIterator& iter, const Scalar& factor, double beta) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "smooth_l1_backward_cuda", [&] {
    const auto scale = factor.to<scalar_t>();
    const auto limit = static_cast<scalar_t>(beta);
    gpu_kernel(
        iter, [scale, limit] GPU_LAMBDA(scalar_t self, scalar_t target, scalar_t grad) -> scalar_t {
          const scalar_t difference = self - target;
          if (difference <= -limit) return -scale * grad;
          if (difference >= limit) return scale * grad;
          return scale * difference * grad / limit;
        });
  });
}

}  // namespace

REGISTER_DISPATCH(mse_stub, &mse_kernel)
REGISTER_DISPATCH(mse_backward_stub, &mse_backward_kernel)
REGISTER_DISPATCH(smooth_l1_stub, &smooth_l1_kernel)
REGISTER_DISPATCH(smooth_l1_backward_stub, &smooth_l1_backward_kernel)

}  // namespace at::native
