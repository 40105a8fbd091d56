// Where a ported source looks for c10/cuda/CUDAFunctions.h.
#pragma once

#include <c10/musa/MUSAException.h>

#include "torch_musa/csrc/core/MUSAFunctions.h"

namespace c10::musa {

/// device_count, or an error where there is no device.
inline DeviceIndex device_count_ensure_non_zero() {
  const DeviceIndex count = device_count();
  TORCH_CHECK(count > 0, "No MUSA devices are available");
  return count;
}

inline DeviceIndex ExchangeDevice(DeviceIndex device) { return exchange_device(device); }
inline DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return maybe_exchange_device(device); }

/// Copies in order of `stream` and waits for it.
inline void memcpy_and_sync(void* dst, const void* src, int64_t nbytes, musaMemcpyKind kind,
                            musaStream_t stream) {
  C10_MUSA_CHECK(musaMemcpyAsync(dst, src, static_cast<size_t>(nbytes), kind, stream));
  C10_MUSA_CHECK(musaStreamSynchronize(stream));
}

inline void stream_synchronize(musaStream_t stream) {
  C10_MUSA_CHECK(musaStreamSynchronize(stream));
}

}  // namespace c10::musa
