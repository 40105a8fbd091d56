// What the CUDA stand-in offers its own libraries beside the public runtime API. Op code never
// includes this; muDNN's and muRAND's stand-ins do.
#pragma once

#include <atomic>
#include <cstddef>

#include "musa_runtime_api.h"

namespace musa::cuda {

// CUDA's ordinal of a device as this process counts them (MUSA_VISIBLE_DEVICES), -1 for none.
MUSART_API int ordinal(int device);

// The reverse: -1 for a device that this process does not see.
MUSART_API int device_of(int ordinal);

// Whether a kernel on `device` may touch every byte of [pointer, pointer + bytes): device memory of
// its own or of another device of the process, managed or page-locked host memory.
MUSART_API bool device_accessible(const void* pointer, size_t bytes, int device);

// Captures that this process has begun and not ended, on any stream.
MUSART_API extern std::atomic<int> captures_under_way;

// Called when a device is full, before an allocation is given up: a library that keeps freed memory
// gives it back here. One function; null takes it away.
MUSART_API void on_out_of_memory(void (*give_back)());

}  // namespace musa::cuda
