// Exponentials and logarithms that muDNN does not have, or not for every dtype.
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

constexpr double kLn2 = 0.693147180559945309417232121458176568;

template <typename T>
__host__ __device__ inline T exp2_of(T x) {
  return std::exp2(x);
}

template <typename T>
__host__ __device__ inline c10::complex<T> exp2_of(c10::complex<T> x) {
  return std::exp(x * static_cast<T>(kLn2));
}

template <typename T>
__host__ __device__ inline T expm1_of(T x) {
  return std::expm1(x);
}

// exp(a + ib) - 1 without cancellation near zero: the real part is expm1(a) cos b - 2 sin^2(b / 2).
template <typename T>
__host__ __device__ inline c10::complex<T> expm1_of(c10::complex<T> x) {
  const T a = x.real();
  const T b = x.imag();
  const T s = std::sin(b / 2);
  return {std::expm1(a) * std::cos(b) - 2 * s * s, std::exp(a) * std::sin(b)};
}

template <typename T>
__host__ __device__ inline T log1p_of(T x) {
  return std::log1p(x);
}

// log|1 + z| by Kahan's rule: for |z| < 1/2 take log1p of |1 + z|^2 - 1 = a (2 + a) + b^2, which
// loses nothing there.
template <typename T>
__host__ __device__ inline c10::complex<T> log1p_of(c10::complex<T> z) {
  const T a = z.real();
  const T b = z.imag();
  const T angle = std::atan2(b, a + 1);
  if (std::abs(z) < T(0.5)) {
    return {std::log1p(a * (a + 2) + b * b) / 2, angle};
  }
  return {std::log(std::hypot(a + 1, b)), angle};
}

void exp2_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("exp2_cuda", exp2_of(x));
}

void expm1_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("expm1_cuda", expm1_of(x));
}

void log1p_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("log1p_cuda", log1p_of(x));
}

void log2_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("log2_cuda", std::log2(x));
}

void log10_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("log10_cuda", std::log10(x));
}

}  // namespace

REGISTER_DISPATCH(exp2_stub, &exp2_kernel)
REGISTER_DISPATCH(expm1_stub, &expm1_kernel)
REGISTER_DISPATCH(log1p_stub, &log1p_kernel)
REGISTER_DISPATCH(log2_stub, &log2_kernel)
REGISTER_DISPATCH(log10_stub, &log10_kernel)

}  // namespace at::native
