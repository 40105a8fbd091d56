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

#endif  // __cplusplus
