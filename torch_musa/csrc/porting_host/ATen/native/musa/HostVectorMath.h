// Lets the compiler vectorize calls of the C library's functions, so that an elementwise sin() runs
// as wide as the machine does.
//
// glibc carries vector variants (libmvec, at most 4 ulp off) and announces them to the compiler
// only under -ffast-math, which would also change what NaN and infinity mean everywhere else.
// Announcing them here costs nothing but the ulps, and only loops marked as free of dependences,
// those of gpu_kernel, may use them.
#pragma once

#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// Compiled twice, for the baseline and for AVX2, and chosen when the library is loaded.
#define HOST_LOOPS_CLONES __attribute__((target_clones("avx2", "default")))
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
#define HOST_LOOPS_HAVE_LIBMVEC
#endif
#endif
#else
#define HOST_LOOPS_CLONES
#endif

#ifdef HOST_LOOPS_HAVE_LIBMVEC
extern "C" {
#define HOST_LOOPS_VECTORIZABLE(name)                                \
  __attribute__((simd("notinbranch"))) double name(double) noexcept; \
  __attribute__((simd("notinbranch"))) float name##f(float) noexcept;
HOST_LOOPS_VECTORIZABLE(acos)
HOST_LOOPS_VECTORIZABLE(acosh)
HOST_LOOPS_VECTORIZABLE(asin)
HOST_LOOPS_VECTORIZABLE(asinh)
HOST_LOOPS_VECTORIZABLE(atan)
HOST_LOOPS_VECTORIZABLE(atanh)
HOST_LOOPS_VECTORIZABLE(cos)
HOST_LOOPS_VECTORIZABLE(cosh)
HOST_LOOPS_VECTORIZABLE(erf)
HOST_LOOPS_VECTORIZABLE(erfc)
HOST_LOOPS_VECTORIZABLE(exp)
HOST_LOOPS_VECTORIZABLE(exp2)
HOST_LOOPS_VECTORIZABLE(expm1)
HOST_LOOPS_VECTORIZABLE(log)
HOST_LOOPS_VECTORIZABLE(log10)
HOST_LOOPS_VECTORIZABLE(log1p)
HOST_LOOPS_VECTORIZABLE(log2)
HOST_LOOPS_VECTORIZABLE(sin)
HOST_LOOPS_VECTORIZABLE(sinh)
HOST_LOOPS_VECTORIZABLE(tan)
HOST_LOOPS_VECTORIZABLE(tanh)
#undef HOST_LOOPS_VECTORIZABLE
#define HOST_LOOPS_VECTORIZABLE(name)                                        \
  __attribute__((simd("notinbranch"))) double name(double, double) noexcept; \
  __attribute__((simd("notinbranch"))) float name##f(float, float) noexcept;
HOST_LOOPS_VECTORIZABLE(atan2)
HOST_LOOPS_VECTORIZABLE(hypot)
HOST_LOOPS_VECTORIZABLE(pow)
#undef HOST_LOOPS_VECTORIZABLE
}
#endif
