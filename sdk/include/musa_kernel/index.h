// Where the calling thread stands in its launch.
#pragma once

#include "engine.h"

// Plain data in the initial TLS block: reading one is a load, from a shared library too. Kernels
// only read them.
MUSA_HOST_TLS uint3 threadIdx MUSA_HOST_TLS_MODEL;
MUSA_HOST_TLS uint3 blockIdx MUSA_HOST_TLS_MODEL;
MUSA_HOST_TLS dim3 blockDim MUSA_HOST_TLS_MODEL;
MUSA_HOST_TLS dim3 gridDim MUSA_HOST_TLS_MODEL;

// Not a constant expression, as the toolkit's is not: 128 or 32, by the profile.
inline const int warpSize = ::musa::host::warp_size();
