// Arithmetic on complex tensors, for the op files whose muDNN classes have no complex types.
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"
#include "kernels/ported/PortedKernels.h"

namespace at::musa {

using native::gpu_kernel;
using native::gpu_kernel_with_scalars;
using native::opmath_dtype;

void add_kernel(TensorIteratorBase& iter, const Scalar& alpha) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "add_cuda", [&] {
    const auto factor = alpha.to<scalar_t>();
    gpu_kernel_with_scalars(
        iter, [factor] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return a + factor * b; });
  });
}

void mul_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "mul_cuda", [&] {
    gpu_kernel_with_scalars(iter,
                            [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return a * b; });
  });
}

void div_true_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "div_true_cuda", [&] {
    gpu_kernel_with_scalars(iter,
                            [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return a / b; });
  });
}

void eq_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "eq_cuda", [&] {
    gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> bool { return a == b; });
  });
}

void ne_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "ne_cuda", [&] {
    gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> bool { return a != b; });
  });
}

void fill_kernel(TensorIteratorBase& iter, const Scalar& value) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter.dtype()), "fill_cuda", [&] {
    const auto v = value.to<scalar_t>();
    gpu_kernel(iter, [v] GPU_LAMBDA() -> scalar_t { return v; });
  });
}

void where_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter.dtype()), "where_cuda", [&] {
    // Operands that are CPU scalars leave the iterator and travel in the functor.
    const bool self_scalar = iter.is_cpu_scalar(2);
    const bool other_scalar = iter.is_cpu_scalar(3);
    const auto self = self_scalar ? iter.scalar_value<scalar_t>(2) : scalar_t(0);
    const auto other = other_scalar ? iter.scalar_value<scalar_t>(3) : scalar_t(0);
    if (other_scalar) {
      iter.remove_operand(3);
    }
    if (self_scalar) {
      iter.remove_operand(2);
    }
    if (self_scalar && other_scalar) {
      gpu_kernel(iter, [self, other] GPU_LAMBDA(bool c) -> scalar_t { return c ? self : other; });
    } else if (self_scalar) {
      gpu_kernel(iter, [self] GPU_LAMBDA(bool c, scalar_t b) -> scalar_t { return c ? self : b; });
    } else if (other_scalar) {
      gpu_kernel(iter,
                 [other] GPU_LAMBDA(bool c, scalar_t a) -> scalar_t { return c ? a : other; });
    } else {
      gpu_kernel(iter,
                 [] GPU_LAMBDA(bool c, scalar_t a, scalar_t b) -> scalar_t { return c ? a : b; });
    }
  });
}

}  // namespace at::musa
