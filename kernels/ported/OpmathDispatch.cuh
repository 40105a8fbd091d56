// Dispatch of elementwise kernels by the type they compute in.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/native/TensorIterator.h>

namespace at::native {

/// The dtype that values of `dtype` are computed in: float for Half and BFloat16, complex<float>
/// for complex<Half>, else itself. (at::toOpMathType knows no answer for the barebones unsigned
/// types.)
inline ScalarType opmath_dtype(ScalarType dtype) {
  switch (dtype) {
    case kHalf:
    case kBFloat16:
      return kFloat;
    case kComplexHalf:
      return kComplexFloat;
    default:
      return dtype;
  }
}

/// The dtype that an iterator's common dtype computes in. A functor of that type serves the narrow
/// dtypes through gpu_kernel's casts on load and store: the same rounding, and half the functors to
/// compile.
inline ScalarType opmath_dtype(const TensorIteratorBase& iter) {
  return opmath_dtype(iter.common_dtype());
}

}  // namespace at::native

/// Follows the parameters of a functor of hundreds of operations: gpu_kernel's loops (some ten for
/// each type) call it instead of repeating it, which takes a device compiler minutes.
#ifdef __MUSA__
#define GPU_CALLED __attribute__((noinline))
#else
#define GPU_CALLED
#endif

// Bodies of unary kernels on `iter`: EXPRESSION is a function of `x`, of type scalar_t.
#define GPU_UNARY_BODY(EXPRESSION) \
  [&] { gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> scalar_t { return EXPRESSION; }); }
#define GPU_UNARY_CALLED_BODY(EXPRESSION) \
  [&] { gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) GPU_CALLED -> scalar_t { return EXPRESSION; }); }
#define GPU_UNARY_FLOATING(NAME, EXPRESSION) \
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), NAME, GPU_UNARY_BODY(EXPRESSION))
#define GPU_UNARY_FLOATING_AND_COMPLEX(NAME, EXPRESSION)                                    \
  if (isComplexType(iter.common_dtype())) {                                                 \
    AT_DISPATCH_COMPLEX_TYPES(opmath_dtype(iter), NAME, GPU_UNARY_CALLED_BODY(EXPRESSION)); \
  } else {                                                                                  \
    GPU_UNARY_FLOATING(NAME, EXPRESSION);                                                   \
  }

// Bodies of binary kernels on `iter`: EXPRESSION is a function of `a` and `b`, of type scalar_t.
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
