#ifndef SAMPLES_CHECK_CUH
#define SAMPLES_CHECK_CUH

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// A macro of the samples' own, by a name that looks like CUDA's.
#define CHECK_CUDA(call)                                         \
  do {                                                           \
    const cudaError_t code_ = (call);                            \
    if (code_ != cudaSuccess) {                                  \
      std::printf("%s: %s\n", #call, cudaGetErrorString(code_)); \
      std::exit(1);                                              \
    }                                                            \
  } while (0)

#endif  // SAMPLES_CHECK_CUH
