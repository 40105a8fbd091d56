// Between complex numbers and their parts: complex, polar, angle, conj_physical.
#include <ATen/NumericUtils.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/util/MathConstants.h>

#include <cmath>
#include <limits>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

void complex_kernel(TensorIterator& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND(kHalf, iter.input_dtype(0), "complex_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> c10::complex<scalar_t> {
      return c10::complex<scalar_t>(a, b);
    });
  });
}

void polar_kernel(TensorIterator& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.input_dtype(0), "polar_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t length, scalar_t angle) -> c10::complex<scalar_t> {
      return c10::complex<scalar_t>(length * std::cos(angle), length * std::sin(angle));
    });
  });
}

// Of a real number: 0, pi for a negative one, and NaN for NaN.
template <typename T>
__host__ __device__ inline T angle_of(T x) {
  if (at::_isnan(x)) {
    return x;
  }
  return x < 0 ? static_cast<T>(c10::pi<double>) : T(0);
}

template <typename T>
__host__ __device__ inline c10::complex<T> angle_of(c10::complex<T> z) {
  if (at::_isnan(z)) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    return {nan, nan};
  }
  return c10::complex<T>(std::atan2(z.imag(), z.real()), 0);
}

void angle_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("angle_cuda", angle_of(x));
}

template <typename T>
__host__ __device__ inline T conj_of(T x) {
  return x;
}

template <typename T>
__host__ __device__ inline c10::complex<T> conj_of(c10::complex<T> z) {
  return std::conj(z);
}

void conj_physical_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(kBool, opmath_dtype(iter), "conj_cuda",
                                        GPU_UNARY_BODY(conj_of(x)));
}

}  // namespace

REGISTER_DISPATCH(complex_stub, &complex_kernel)
REGISTER_DISPATCH(polar_stub, &polar_kernel)
REGISTER_DISPATCH(angle_stub, &angle_kernel)
REGISTER_DISPATCH(conj_physical_stub, &conj_physical_kernel)

}  // namespace at::native
