// Bits of integers: and, or, xor and shifts.
#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include <limits>
#include <type_traits>

namespace at::native {
namespace {

// A shift by the width or more is undefined in C++; here it shifts everything out, and so does a
// negative one.
template <typename T>
__host__ __device__ inline T shift_left(T a, T b) {
  constexpr int kWidth = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  if (static_cast<std::make_signed_t<T>>(b) < 0 || b >= static_cast<T>(kWidth)) {
    return 0;
  }
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
}

template <typename T>
__host__ __device__ inline T shift_right(T a, T b) {
  // What is left of a signed value is its sign, -1 or 0.
  constexpr int kLast = std::numeric_limits<std::make_unsigned_t<T>>::digits - std::is_signed_v<T>;
  if (static_cast<std::make_signed_t<T>>(b) < 0 || b >= static_cast<T>(kLast)) {
    return static_cast<T>(a >> kLast);
  }
  return static_cast<T>(a >> b);
}

#define GPU_BITWISE(NAME, EXPRESSION)                                                          \
  AT_DISPATCH_V2(iter.common_dtype(), NAME, AT_WRAP([&] {                                      \
                   gpu_kernel_with_scalars(iter,                                               \
                                           [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { \
                                             return static_cast<scalar_t>(EXPRESSION);         \
                                           });                                                 \
                 }),                                                                           \
                 kBool, AT_EXPAND(AT_INTEGRAL_TYPES_V2))

void bitwise_and_kernel(TensorIteratorBase& iter) { GPU_BITWISE("bitwise_and_cuda", a & b); }

void bitwise_or_kernel(TensorIteratorBase& iter) { GPU_BITWISE("bitwise_or_cuda", a | b); }

void bitwise_xor_kernel(TensorIteratorBase& iter) { GPU_BITWISE("bitwise_xor_cuda", a ^ b); }

void lshift_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "lshift_cuda", [&] {
    gpu_kernel_with_scalars(
        iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return shift_left(a, b); });
  });
}

void rshift_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "rshift_cuda", [&] {
    gpu_kernel_with_scalars(
        iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return shift_right(a, b); });
  });
}

}  // namespace

REGISTER_DISPATCH(bitwise_and_stub, &bitwise_and_kernel)
REGISTER_DISPATCH(bitwise_or_stub, &bitwise_or_kernel)
REGISTER_DISPATCH(bitwise_xor_stub, &bitwise_xor_kernel)
REGISTER_DISPATCH(lshift_stub, &lshift_kernel)
REGISTER_DISPATCH(rshift_stub, &rshift_kernel)

}  // namespace at::native
