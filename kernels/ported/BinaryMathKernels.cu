// Two-argument functions of the C library and of special-function tables, and the integers' gcd and
// lcm.
#include <ATen/NumericUtils.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/ported/DeviceMath.cuh"
#include "kernels/ported/IncompleteGamma.cuh"
#include "kernels/ported/OpmathDispatch.cuh"

// EXPRESSION is a function of `a` and `b`. The narrow dtypes compute in float.
#define GPU_BINARY_BODY(EXPRESSION)                                                      \
  [&] {                                                                                  \
    gpu_kernel_with_scalars(                                                             \
        iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return EXPRESSION; }); \
  }
#define GPU_BINARY_CALLED_BODY(EXPRESSION)                                                       \
  [&] {                                                                                          \
    gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) GPU_CALLED -> scalar_t { \
      return EXPRESSION;                                                                         \
    });                                                                                          \
  }
#define GPU_BINARY_FLOATING(NAME, EXPRESSION) \
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), NAME, GPU_BINARY_CALLED_BODY(EXPRESSION))

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

// The neighbour of `from` towards `to`: floats of one sign are ordered as their bits are.
template <typename T, typename bits_t>
__host__ __device__ inline T nextafter_bits(T from, T to) {
  if (at::_isnan(from) || at::_isnan(to)) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  if (from == to) {
    return to;
  }
  bits_t bits;
  std::memcpy(&bits, &from, sizeof(T));
  constexpr bits_t kSign = bits_t(1) << (8 * sizeof(T) - 1);
  if ((bits & ~kSign) == 0) {
    bits = static_cast<bits_t>((to < T(0) ? kSign : 0) | 1);  // the smallest subnormal
  } else if ((from < to) == ((bits & kSign) == 0)) {
    ++bits;  // away from zero
  } else {
    --bits;
  }
  T result;
  std::memcpy(&result, &bits, sizeof(T));
  return result;
}

template <typename T>
__host__ __device__ inline T nextafter_of(T from, T to) {
  if constexpr (sizeof(T) == 2) {
    return nextafter_bits<T, uint16_t>(from, to);
  } else {
    return std::nextafter(from, to);
  }
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

template <typename T>
__host__ __device__ inline T magnitude_of(T x) {
  return x < 0 ? static_cast<T>(-x) : x;
}

template <typename T>
__host__ __device__ inline T gcd_of(T a, T b) {
  a = magnitude_of(a);
  b = magnitude_of(b);
  while (a != 0) {
    const T rest = static_cast<T>(b % a);
    b = a;
    a = rest;
  }
  return b;
}

template <typename T>
__host__ __device__ inline T lcm_of(T a, T b) {
  const T divisor = gcd_of(a, b);
  return divisor == 0 ? T(0) : magnitude_of(static_cast<T>(a / divisor * b));
}

void atan2_kernel(TensorIteratorBase& iter) { GPU_BINARY_FLOATING("atan2_cuda", std::atan2(a, b)); }

void hypot_kernel(TensorIteratorBase& iter) { GPU_BINARY_FLOATING("hypot_cuda", std::hypot(a, b)); }

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

// a with the sign of b, also of a zero or NaN.
template <typename T>
__host__ __device__ inline T copysign_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::copysign(a, b);
  } else {
    return T(static_cast<uint16_t>((a.x & 0x7fff) | (b.x & 0x8000)), T::from_bits());
  }
}

// These two look at bits, so they run on the dtype itself.
void copysign_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "copysign_cuda",
                                  GPU_BINARY_BODY(copysign_of(a, b)));
}

void nextafter_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "nextafter_cuda",
                                  GPU_BINARY_CALLED_BODY(nextafter_of(a, b)));
}

void fmax_kernel(TensorIteratorBase& iter) {
  if (isFloatingType(iter.common_dtype())) {
    AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "fmax_cuda", GPU_BINARY_BODY(std::fmax(a, b)));
    return;
  }
  AT_DISPATCH_INTEGRAL_TYPES_AND(kBool, iter.common_dtype(), "fmax_cuda",
                                 GPU_BINARY_BODY((a < b ? b : a)));
}

void fmin_kernel(TensorIteratorBase& iter) {
  if (isFloatingType(iter.common_dtype())) {
    AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "fmin_cuda", GPU_BINARY_BODY(std::fmin(a, b)));
    return;
  }
  AT_DISPATCH_INTEGRAL_TYPES_AND(kBool, iter.common_dtype(), "fmin_cuda",
                                 GPU_BINARY_BODY((b < a ? b : a)));
}

void heaviside_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND(
      kBool, opmath_dtype(iter), "heaviside_cuda",
      GPU_BINARY_BODY((a == scalar_t(0) ? b : static_cast<scalar_t>(a > scalar_t(0)))));
}

void gcd_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "gcd_cuda", GPU_BINARY_CALLED_BODY(gcd_of(a, b)));
}

void lcm_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "lcm_cuda", GPU_BINARY_CALLED_BODY(lcm_of(a, b)));
}

}  // namespace

REGISTER_DISPATCH(atan2_stub, &atan2_kernel)
REGISTER_DISPATCH(hypot_stub, &hypot_kernel)
REGISTER_DISPATCH(xlogy_stub, &xlogy_kernel)
REGISTER_DISPATCH(xlog1py_stub, &xlog1py_kernel)
REGISTER_DISPATCH(igamma_stub, &igamma_kernel)
REGISTER_DISPATCH(igammac_stub, &igammac_kernel)
REGISTER_DISPATCH(logaddexp_stub, &logaddexp_kernel)
REGISTER_DISPATCH(logaddexp2_stub, &logaddexp2_kernel)
REGISTER_DISPATCH(zeta_stub, &zeta_kernel)
REGISTER_DISPATCH(copysign_stub, &copysign_kernel)
REGISTER_DISPATCH(nextafter_stub, &nextafter_kernel)
REGISTER_DISPATCH(fmax_stub, &fmax_kernel)
REGISTER_DISPATCH(fmin_stub, &fmin_kernel)
REGISTER_DISPATCH(heaviside_stub, &heaviside_kernel)
REGISTER_DISPATCH(gcd_stub, &gcd_kernel)
REGISTER_DISPATCH(lcm_stub, &lcm_kernel)

}  // namespace at::native
