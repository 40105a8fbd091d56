// Two-argument functions of the C library, and the integers' gcd and lcm.
#include <ATen/NumericUtils.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

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
REGISTER_DISPATCH(copysign_stub, &copysign_kernel)
REGISTER_DISPATCH(nextafter_stub, &nextafter_kernel)
REGISTER_DISPATCH(fmax_stub, &fmax_kernel)
REGISTER_DISPATCH(fmin_stub, &fmin_kernel)
REGISTER_DISPATCH(heaviside_stub, &heaviside_kernel)
REGISTER_DISPATCH(gcd_stub, &gcd_kernel)
REGISTER_DISPATCH(lcm_stub, &lcm_kernel)

}  // namespace at::native
