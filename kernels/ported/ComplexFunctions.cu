// Functions of complex tensors, for the op files whose muDNN modes have no complex types.
#include <ATen/native/cuda/Loops.cuh>

#include <cmath>

#include "kernels/ported/OpmathDispatch.cuh"
#include "kernels/ported/PortedKernels.h"

#define GPU_UNARY_COMPLEX(NAME, EXPRESSION) \
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), NAME, GPU_UNARY_BODY(EXPRESSION))

namespace at::musa {

using native::gpu_kernel;
using native::gpu_kernel_with_scalars;
using native::opmath_dtype;

void exp_kernel(TensorIteratorBase& iter) { GPU_UNARY_COMPLEX("exp_cuda", std::exp(x)); }

void log_kernel(TensorIteratorBase& iter) { GPU_UNARY_COMPLEX("log_cuda", std::log(x)); }

void sqrt_kernel(TensorIteratorBase& iter) { GPU_UNARY_COMPLEX("sqrt_cuda", std::sqrt(x)); }

void rsqrt_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_COMPLEX("rsqrt_cuda", scalar_t(1) / std::sqrt(x));
}

void reciprocal_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_COMPLEX("reciprocal_cuda", scalar_t(1) / x);
}

void sigmoid_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_COMPLEX("sigmoid_cuda", scalar_t(1) / (scalar_t(1) + std::exp(-x)));
}

void tanh_kernel(TensorIteratorBase& iter) { GPU_UNARY_COMPLEX("tanh_cuda", std::tanh(x)); }

void pow_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "pow_cuda", [&] {
    gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t base, scalar_t exponent) -> scalar_t {
      return std::pow(base, exponent);
    });
  });
}

}  // namespace at::musa
