// Signs, integer and fractional parts, tests for infinity and the bits of integers.
#include <ATen/NumericUtils.h>
#include <ATen/native/TensorCompare.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

template <typename T>
__host__ __device__ inline T sign_of(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;
  } else {
    // A NaN is neither above nor below zero, and its sign is zero.
    return static_cast<T>((T(0) < x) - (x < T(0)));
  }
}

// z / |z|, and 0 for 0.
template <typename T>
__host__ __device__ inline c10::complex<T> sgn_of(c10::complex<T> z) {
  const T magnitude = std::abs(z);
  return magnitude == T(0) ? c10::complex<T>(0, 0) : z / magnitude;
}

void trunc_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("trunc_cuda", std::trunc(x)); }

void frac_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("frac_cuda", x - std::trunc(x)); }

void sign_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND(kBool, opmath_dtype(iter), "sign_cuda", GPU_UNARY_BODY(sign_of(x)));
}

void sgn_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), "sgn_cuda", GPU_UNARY_BODY(sgn_of(x)));
}

void signbit_kernel(TensorIteratorBase& iter) {
  const ScalarType dtype = opmath_dtype(iter.input_dtype());
  if (isIntegralType(dtype, /*includeBool=*/true) && !isSignedType(dtype)) {
    // Nothing below zero there; what the bytes are cast to does not matter.
    gpu_kernel(iter, [] GPU_LAMBDA(uint8_t) -> bool { return false; });
  } else if (isIntegralType(dtype, /*includeBool=*/false)) {
    AT_DISPATCH_INTEGRAL_TYPES(dtype, "signbit_cuda", [&] {
      gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> bool { return x < scalar_t(0); });
    });
  } else {
    AT_DISPATCH_FLOATING_TYPES(dtype, "signbit_cuda", [&] {
      gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> bool { return std::signbit(x); });
    });
  }
}

void isposinf_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter.input_dtype()), "isposinf_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> bool {
      return x == std::numeric_limits<scalar_t>::infinity();
    });
  });
}

void isneginf_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter.input_dtype()), "isneginf_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> bool {
      return x == -std::numeric_limits<scalar_t>::infinity();
    });
  });
}

void bitwise_not_kernel(TensorIteratorBase& iter) {
  if (iter.common_dtype() == kBool) {
    gpu_kernel(iter, [] GPU_LAMBDA(bool x) -> bool { return !x; });
    return;
  }
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "bitwise_not_cuda",
                             GPU_UNARY_BODY(static_cast<scalar_t>(~x)));
}

}  // namespace

REGISTER_DISPATCH(trunc_stub, &trunc_kernel)
REGISTER_DISPATCH(frac_stub, &frac_kernel)
REGISTER_DISPATCH(sign_stub, &sign_kernel)
REGISTER_DISPATCH(sgn_stub, &sgn_kernel)
REGISTER_DISPATCH(signbit_stub, &signbit_kernel)
REGISTER_DISPATCH(isposinf_stub, &isposinf_kernel)
REGISTER_DISPATCH(isneginf_stub, &isneginf_kernel)
REGISTER_DISPATCH(bitwise_not_stub, &bitwise_not_kernel)

}  // namespace at::native
