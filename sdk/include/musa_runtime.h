// MUSA runtime, C++ interface: the C calls plus typed overloads and what a kernel source needs.
#pragma once

#include "musa_runtime_api.h"

#ifdef __cplusplus

template <typename T>
inline musaError_t musaMalloc(T** pointer, size_t bytes) {
  return musaMalloc(reinterpret_cast<void**>(pointer), bytes);
}

template <typename T>
inline musaError_t musaMallocHost(T** pointer, size_t bytes) {
  return musaMallocHost(reinterpret_cast<void**>(pointer), bytes);
}

template <typename T>
inline musaError_t musaHostAlloc(T** pointer, size_t bytes, unsigned int flags) {
  return musaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

#include "musa_vector_types.h"

template <typename T>
inline musaError_t musaMallocManaged(T** pointer, size_t bytes,
                                     unsigned int flags = musaMemAttachGlobal) {
  return musaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <typename T>
inline musaError_t musaMallocAsync(T** pointer, size_t bytes, musaStream_t stream) {
  return musaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}

// `arguments`: a pointer to each argument of the kernel.
extern "C" MUSART_API musaError_t musaLaunchKernel(const void* function, dim3 grid, dim3 block,
                                                   void** arguments, size_t shared,
                                                   musaStream_t stream);

template <typename Kernel>
inline musaError_t musaLaunchKernel(Kernel* function, dim3 grid, dim3 block, void** arguments,
                                    size_t shared = 0, musaStream_t stream = nullptr) {
  return musaLaunchKernel(reinterpret_cast<const void*>(function), grid, block, arguments, shared,
                          stream);
}

template <typename Kernel>
inline musaError_t musaFuncGetAttributes(musaFuncAttributes* attributes, Kernel* function) {
  return musaFuncGetAttributes(attributes, reinterpret_cast<const void*>(function));
}

template <typename Kernel>
inline musaError_t musaFuncSetAttribute(Kernel* function, musaFuncAttribute attribute, int value) {
  return musaFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value);
}

template <typename Kernel>
inline musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* function,
                                                                 int block_size,
                                                                 size_t dynamic_shared) {
  return musaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(function), block_size, dynamic_shared);
}

#endif  // __cplusplus
