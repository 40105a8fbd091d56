// Two-argument special functions: logarithms that spare their limits, incomplete gamma functions,
// Hurwitz' zeta.
#include <ATen/NumericUtils.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include <limits>

#include "kernels/ported/DeviceMath.cuh"
#include "kernels/ported/IncompleteGamma.cuh"
#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

template <typename T>
__host__ __device__ inline T xlogy_of(T x, T y) {
  if (at::_isnan(y)) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  return x == 0 ? T(0) : x * std::log(y);
}

template <typename T>
__host__ __device__ inline T xlog1py_of(T x, T y) {
  if (at::_isnan(y)) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  return x == 0 ? T(0) : x * std::log1p(y);
}

// log(exp(a) + exp(b)) without overflow. Equal infinities are their own sum.
template <typename T>
__host__ __device__ inline T logaddexp_of(T a, T b) {
  if (std::isinf(a) && a == b) {
    return a;
  }
  return std::fmax(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// The larger real part is taken out; where both are the same infinity, minus infinity absorbs and
// plus infinity goes through the definition, which finds its angle.
template <typename T>
__host__ __device__ inline c10::complex<T> logaddexp_of(c10::complex<T> a, c10::complex<T> b) {
  if (at::_isnan(a) || at::_isnan(b)) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    return {nan, nan};
  }
  const auto low = a.real() < b.real() ? a : b;
  const auto high = a.real() < b.real() ? b : a;
  if (std::isinf(low.real()) && low.real() == high.real()) {
    return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
  }
  const auto z = std::exp(low - high);
  return high + std::log(c10::complex<T>(1, 0) + z);
}

template <typename T>
__host__ __device__ inline T logaddexp2_of(T a, T b) {
  if (std::isinf(a) && a == b) {
    return a;
  }
  constexpr T kLog2E = static_cast<T>(1.442695040888963407359924681001892137);
  return std::fmax(a, b) + std::log1p(std::exp2(-std::abs(a - b))) * kLog2E;
}

void xlogy_kernel(TensorIteratorBase& iter) { GPU_BINARY_FLOATING("xlogy_cuda", xlogy_of(a, b)); }

void xlog1py_kernel(TensorIteratorBase& iter) {
  GPU_BINARY_FLOATING("xlog1py_cuda", xlog1py_of(a, b));
}

void igamma_kernel(TensorIteratorBase& iter) {
  GPU_BINARY_FLOATING("igamma_cuda", regularized_lower_gamma(a, b));
}

void igammac_kernel(TensorIteratorBase& iter) {
  GPU_BINARY_FLOATING("igammac_cuda", regularized_upper_gamma(a, b));
}

void logaddexp_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(opmath_dtype(iter), "logaddexp_cuda",
                                         GPU_BINARY_CALLED_BODY(logaddexp_of(a, b)));
}

void logaddexp2_kernel(TensorIteratorBase& iter) {
  GPU_BINARY_FLOATING("logaddexp2_cuda", logaddexp2_of(a, b));
}

void zeta_kernel(TensorIteratorBase& iter) {
  // As on the CPU, not for Half and BFloat16.
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "zeta_cuda",
                             GPU_BINARY_CALLED_BODY((zeta<scalar_t, /*is_cuda=*/false>(a, b))));
}

}  // namespace

REGISTER_DISPATCH(xlogy_stub, &xlogy_kernel)
REGISTER_DISPATCH(xlog1py_stub, &xlog1py_kernel)
REGISTER_DISPATCH(igamma_stub, &igamma_kernel)
REGISTER_DISPATCH(igammac_stub, &igammac_kernel)
REGISTER_DISPATCH(logaddexp_stub, &logaddexp_kernel)
REGISTER_DISPATCH(logaddexp2_stub, &logaddexp2_kernel)
REGISTER_DISPATCH(zeta_stub, &zeta_kernel)

}  // namespace at::native
