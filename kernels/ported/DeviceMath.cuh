// Special functions for kernels (calc_digamma, calc_i0, zeta, the polynomials ...), on every
// target.
//
// ATen/native/Math.h has them all, but some for the host alone. A device compiler takes those from
// ATen/native/cuda/Math.cuh, whose functions are there where it does not hold CUDA source as
// strings for a run-time compiler instead. trigamma_of and erfinv_of are called differently in the
// two.
#pragma once

#include <ATen/native/Math.h>

#ifdef __MUSA__
#include <ATen/jit_macros.h>
#undef AT_USE_JITERATOR
#define AT_USE_JITERATOR() 0
#include <ATen/native/cuda/Math.cuh>
#endif

namespace at::native {

template <typename T>
C10_HOST_DEVICE inline T trigamma_of(T x) {
#ifdef __MUSA__
  return calc_trigamma(x);
#else
  return trigamma(x);
#endif
}

template <typename T>
C10_HOST_DEVICE inline T erfinv_of(T x) {
#ifdef __MUSA__
  return ::erfinv(x);
#else
  return calc_erfinv(x);
#endif
}

}  // namespace at::native
