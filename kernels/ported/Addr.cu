// addr, the outer product added to a matrix, hung on PyTorch's stub.
#include <ATen/Dispatch.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

// With beta 0 the matrix is ignored, nan and all.
void addr_kernel(TensorIterator& iter, const Scalar& beta, const Scalar& alpha) {
  if (iter.common_dtype() == kBool) {
    const bool keeps = beta.to<bool>(), adds = alpha.to<bool>();
    gpu_kernel(iter, [keeps, adds] GPU_LAMBDA(bool self, bool first, bool second) -> bool {
      return (keeps && self) || (adds && first && second);
    });
    return;
  }
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(opmath_dtype(iter), "addr_cuda", [&] {
    const auto b = beta.to<scalar_t>(), a = alpha.to<scalar_t>();
    gpu_kernel(iter, [b, a] GPU_LAMBDA(scalar_t self, scalar_t first, scalar_t second) -> scalar_t {
      const scalar_t product = a * first * second;
      return b == scalar_t(0) ? product : b * self + product;
    });
  });
}

}  // namespace

REGISTER_DISPATCH(addr_stub, &addr_kernel)

}  // namespace at::native
