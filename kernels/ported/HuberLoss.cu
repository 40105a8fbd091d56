// Elementwise parts of huber_loss and of its gradient, hung on PyTorch's stubs; the reductions
// around them are PyTorch's.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

namespace at::native {
namespace {

// Quadratic within delta of the target, linear beyond.
void huber_kernel(TensorIterator& iter, double delta) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "huber_cuda", [&] {
    const auto limit = static_cast<scalar_t>(delta);
    gpu_kernel(iter, [limit] GPU_LAMBDA(scalar_t self, scalar_t target) -> scalar_t {
      const scalar_t distance = self > target ? self - target : target - self;
      return distance < limit ? scalar_t(0.5) * distance * distance
                              : limit * (distance - scalar_t(0.5) * limit);
    });
  });
}

// Inputs: self, target, grad. `factor` is 1, over the number of elements for the mean.
void huber_backward_kernel(TensorIterator& iter, const Scalar& factor, double delta) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "huber_backward_cuda", [&] {
    const auto scale = factor.to<scalar_t>();
    const auto limit = static_cast<scalar_t>(delta);
    gpu_kernel(
        iter, [scale, limit] GPU_LAMBDA(scalar_t self, scalar_t target, scalar_t grad) -> scalar_t {
          const scalar_t difference = self - target;
          if (difference <= -limit) return -scale * grad * limit;
          if (difference >= limit) return scale * grad * limit;
          return scale * difference * grad;
        });
  });
}

}  // namespace

REGISTER_DISPATCH(huber_stub, &huber_kernel)
REGISTER_DISPATCH(huber_backward_stub, &huber_backward_kernel)

}  // namespace at::native
