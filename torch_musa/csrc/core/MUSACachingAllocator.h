#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <utility>

#include "torch_musa/csrc/core/MUSAStream.h"

namespace c10::musa::MUSACachingAllocator {

/// The allocator behind every musa tensor: keeps freed device memory and hands it out again on the
/// stream that freed it.
c10::DeviceAllocator* get();

/// `nbytes` on the current device, in order of the current stream; null for zero bytes. Free with
/// raw_delete.
void* raw_alloc(size_t nbytes);
void raw_delete(void* ptr);

/// Keeps the block of `data_ptr` from being handed out again before `stream` has done what is
/// enqueued on it now.
void recordStream(const DataPtr& data_ptr, MUSAStream stream);

/// Gives every unused cached block of every device back to the driver.
void emptyCache();

CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device);
void resetPeakStats(DeviceIndex device);
void resetAccumulatedStats(DeviceIndex device);

/// (free, total) bytes of the device as the driver sees it.
std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device);

}  // namespace c10::musa::MUSACachingAllocator
