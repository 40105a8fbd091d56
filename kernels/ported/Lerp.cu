// lerp.Scalar and lerp.Tensor, hung on PyTorch's stubs.
#include <ATen/core/Tensor.h>
#include <ATen/native/Lerp.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

void lerp_scalar_kernel(TensorIteratorBase& iter, const Scalar& weight) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(opmath_dtype(iter), "lerp_cuda", [&] {
    const auto w = weight.to<scalar_t>();
    gpu_kernel(iter, [w] GPU_LAMBDA(scalar_t self, scalar_t end) -> scalar_t {
      return lerp(self, end, w);
    });
  });
}

void lerp_tensor_kernel(TensorIteratorBase& iter) {
  // A weight that is a CPU scalar never reaches the device as a tensor.
  if (iter.is_cpu_scalar(3)) {
    const Scalar weight = iter.tensor(3).item();
    iter.remove_operand(3);
    return lerp_scalar_kernel(iter, weight);
  }
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(opmath_dtype(iter), "lerp_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t self, scalar_t end, scalar_t weight) -> scalar_t {
      return lerp(self, end, weight);
    });
  });
}

}  // namespace

REGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel)
REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel)

}  // namespace at::native
