// Variables of the device: `__constant__ float table[64];`, `__device__ int counter;`. All devices
// of the process see one copy, and the host could read it too: use the calls below, as a real
// device demands.
#pragma once

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "musa_host.h"

namespace musa::host {

inline bool symbol_range(size_t symbol_bytes, const void* other, size_t bytes, size_t offset) {
  return offset <= symbol_bytes && bytes <= symbol_bytes - offset &&
         (other != nullptr || bytes == 0);
}

}  // namespace musa::host

template <typename T>
musaError_t musaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes,
                                    size_t offset = 0, musaMemcpyKind kind = musaMemcpyHostToDevice,
                                    musaStream_t stream = nullptr) {
  if (kind != musaMemcpyHostToDevice && kind != musaMemcpyDeviceToDevice &&
      kind != musaMemcpyDefault) {
    return ::musa::host::set_last_error(musaErrorInvalidMemcpyDirection);
  }
  if (!::musa::host::symbol_range(sizeof(T), source, bytes, offset)) {
    return ::musa::host::set_last_error(musaErrorInvalidValue);
  }
  auto* to = reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(std::addressof(symbol)));
  if (kind == musaMemcpyHostToDevice) {
    // Pageable memory is read before the call returns.
    const auto* from = static_cast<const char*>(source);
    return ::musa::host::try_enqueue(stream,
                                     [to, offset, copy = std::vector<char>(from, from + bytes)] {
                                       std::memcpy(to + offset, copy.data(), copy.size());
                                     });
  }
  return ::musa::host::try_enqueue(
      stream, [to, offset, source, bytes] { std::memcpy(to + offset, source, bytes); });
}

template <typename T>
musaError_t musaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                               musaMemcpyKind kind = musaMemcpyHostToDevice) {
  const musaError_t error = musaMemcpyToSymbolAsync(symbol, source, bytes, offset, kind);
  return error == musaSuccess ? musaStreamSynchronize(nullptr) : error;
}

template <typename T>
musaError_t musaMemcpyFromSymbolAsync(void* destination, const T& symbol, size_t bytes,
                                      size_t offset = 0,
                                      musaMemcpyKind kind = musaMemcpyDeviceToHost,
                                      musaStream_t stream = nullptr) {
  if (kind != musaMemcpyDeviceToHost && kind != musaMemcpyDeviceToDevice &&
      kind != musaMemcpyDefault) {
    return ::musa::host::set_last_error(musaErrorInvalidMemcpyDirection);
  }
  if (!::musa::host::symbol_range(sizeof(T), destination, bytes, offset)) {
    return ::musa::host::set_last_error(musaErrorInvalidValue);
  }
  const auto* from = reinterpret_cast<const char*>(std::addressof(symbol));
  return ::musa::host::try_enqueue(stream, [from, offset, destination, bytes] {
    std::memcpy(destination, from + offset, bytes);
  });
}

template <typename T>
musaError_t musaMemcpyFromSymbol(void* destination, const T& symbol, size_t bytes,
                                 size_t offset = 0, musaMemcpyKind kind = musaMemcpyDeviceToHost) {
  const musaError_t error = musaMemcpyFromSymbolAsync(destination, symbol, bytes, offset, kind);
  return error == musaSuccess ? musaStreamSynchronize(nullptr) : error;
}

template <typename T>
musaError_t musaGetSymbolAddress(void** pointer, const T& symbol) {
  if (pointer == nullptr) return ::musa::host::set_last_error(musaErrorInvalidValue);
  *pointer = const_cast<std::remove_const_t<T>*>(std::addressof(symbol));
  return musaSuccess;
}

template <typename T>
musaError_t musaGetSymbolSize(size_t* bytes, const T&) {
  if (bytes == nullptr) return ::musa::host::set_last_error(musaErrorInvalidValue);
  *bytes = sizeof(T);
  return musaSuccess;
}
