// What PyTorch's headers declare under CUDA's own compiler alone, and kernels expect. Every device
// source is compiled with this in front (cmake/MusaPort.cmake, torch_musa/utils/_toolchain.py); not
// by -include in the build, whose precompiled header must come first.
#pragma once

#ifndef __CUDACC__

#define C10_MAX_THREADS_PER_BLOCK(val) ((val) <= 1024 ? (val) : 256)
// How many blocks should share a multiprocessor is a wish about speed that nobody here hears.
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256)
#define C10_LAUNCH_BOUNDS_1(max_threads) __launch_bounds__(C10_MAX_THREADS_PER_BLOCK((max_threads)))
#define C10_LAUNCH_BOUNDS_2(max_threads, min_blocks) C10_LAUNCH_BOUNDS_1(max_threads)

namespace at {

/// For packed accessors: pointers that nothing else points to.
template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

}  // namespace at

#endif
