// What mcc puts in front of a .mu source on CUDA, and nobody else includes: MUSA's names for what
// nvcc calls otherwise. The dialect itself (launches, __shared__, threadIdx) is nvcc's own.
#pragma once

#define __MUSACC__ 1
#define __MUSA__ 1
#ifdef __CUDA_ARCH__
// What kernels may use is the card's to offer: the newest chip's feature set.
#define __MUSA_ARCH__ 310
#endif

#include <cuda_runtime.h>

#include "musa_runtime_api.h"
//
#include "musa_runtime.h"

namespace musa::cuda {

// CUDA's error as the runtime spells it; the call is still the thread's last error.
inline musaError_t symbol_error(cudaError_t error) {
  return error == cudaSuccess ? musaSuccess : musaPeekAtLastError();
}

inline cudaMemcpyKind symbol_kind(musaMemcpyKind kind) { return static_cast<cudaMemcpyKind>(kind); }

}  // namespace musa::cuda

template <typename T>
musaError_t musaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                               musaMemcpyKind kind = musaMemcpyHostToDevice) {
  return musa::cuda::symbol_error(
      cudaMemcpyToSymbol(symbol, source, bytes, offset, musa::cuda::symbol_kind(kind)));
}

template <typename T>
musaError_t musaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes,
                                    size_t offset = 0, musaMemcpyKind kind = musaMemcpyHostToDevice,
                                    musaStream_t stream = nullptr) {
  return musa::cuda::symbol_error(cudaMemcpyToSymbolAsync(symbol, source, bytes, offset,
                                                          musa::cuda::symbol_kind(kind), stream));
}

template <typename T>
musaError_t musaMemcpyFromSymbol(void* destination, const T& symbol, size_t bytes,
                                 size_t offset = 0, musaMemcpyKind kind = musaMemcpyDeviceToHost) {
  return musa::cuda::symbol_error(
      cudaMemcpyFromSymbol(destination, symbol, bytes, offset, musa::cuda::symbol_kind(kind)));
}

template <typename T>
musaError_t musaMemcpyFromSymbolAsync(void* destination, const T& symbol, size_t bytes,
                                      size_t offset = 0,
                                      musaMemcpyKind kind = musaMemcpyDeviceToHost,
                                      musaStream_t stream = nullptr) {
  return musa::cuda::symbol_error(cudaMemcpyFromSymbolAsync(destination, symbol, bytes, offset,
                                                            musa::cuda::symbol_kind(kind), stream));
}

template <typename T>
musaError_t musaGetSymbolAddress(void** pointer, const T& symbol) {
  return musa::cuda::symbol_error(cudaGetSymbolAddress(pointer, symbol));
}

template <typename T>
musaError_t musaGetSymbolSize(size_t* bytes, const T& symbol) {
  return musa::cuda::symbol_error(cudaGetSymbolSize(bytes, symbol));
}
