// Kernels: nvcc has registered them with CUDA's runtime, so its functions serve.
#include "Api.h"
#include "musa_runtime.h"

using musa::cuda::done;
using musa::cuda::refuse;
using musa::cuda::settle_thread;

musaError_t musaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, musaStream_t stream) {
  settle_thread();
  return done(cudaLaunchKernel(function, grid, block, arguments, shared, stream));
}

musaError_t musaFuncGetAttributes(musaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return refuse(musaErrorInvalidValue);
  settle_thread();
  cudaFuncAttributes cuda{};
  const cudaError_t error = cudaFuncGetAttributes(&cuda, function);
  if (error != cudaSuccess) return done(error);
  attributes->sharedSizeBytes = cuda.sharedSizeBytes;
  attributes->constSizeBytes = cuda.constSizeBytes;
  attributes->localSizeBytes = cuda.localSizeBytes;
  attributes->maxThreadsPerBlock = cuda.maxThreadsPerBlock;
  attributes->numRegs = cuda.numRegs;
  attributes->ptxVersion = cuda.ptxVersion;
  attributes->binaryVersion = cuda.binaryVersion;
  attributes->cacheModeCA = cuda.cacheModeCA;
  attributes->maxDynamicSharedSizeBytes = cuda.maxDynamicSharedSizeBytes;
  attributes->preferredShmemCarveout = cuda.preferredShmemCarveout;
  return musaSuccess;
}

musaError_t musaFuncSetAttribute(const void* function, musaFuncAttribute attribute, int value) {
  settle_thread();
  return done(cudaFuncSetAttribute(function, static_cast<cudaFuncAttribute>(attribute), value));
}

musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t dynamic_shared) {
  return musaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, block_size, dynamic_shared, musaOccupancyDefault);
}

musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t dynamic_shared, unsigned int flags) {
  settle_thread();
  return done(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                     dynamic_shared, flags));
}
