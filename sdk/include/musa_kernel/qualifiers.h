// The words of MUSA's dialect that the host has no use for. `__shared__` is mcc's to rewrite (see
// shared.h), `__noinline__` as well, since the C++ library uses that word inside an attribute.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
// A parameter that no thread changes, `const T __grid_constant__ x`, need not be copied for every
// thread.
#define __grid_constant__ &
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
