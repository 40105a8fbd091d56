#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <functional>
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

// ---- private pools: memory of graphs and of MemPools, from which nobody else is served ----

/// An id that no pool has: {n, 0} for the pool of one graph, {0, n} for one that a user names.
MempoolId_t new_graph_pool_id();
MempoolId_t new_user_pool_id();

/// The pool (made where there is none) lives while somebody retains it, and then until its last
/// block is free and empty_cache, or a lack of memory, gives it back to the driver.
void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, bool use_on_oom = false,
                        bool no_split = false);
void releasePool(DeviceIndex device, MempoolId_t pool);
int getPoolUseCount(DeviceIndex device, MempoolId_t pool);

/// Until endAllocateToPool the pool serves allocations on the streams that `serves` accepts, in any
/// thread; the caller retains the pool. `captures`: a graph is being captured, so nothing on this
/// device may wait meanwhile. Cached memory is not given back then, and blocks used on further
/// streams stay with their owners.
void beginAllocateToPool(DeviceIndex device, MempoolId_t pool,
                         std::function<bool(const MUSAStream&)> serves, bool captures);
void endAllocateToPool(DeviceIndex device, MempoolId_t pool);

/// `nbytes` of memory that no open route diverts; for what a capture needs but must not be part of.
DataPtr allocate_outside_pools(DeviceIndex device, size_t nbytes);

CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device);
void resetPeakStats(DeviceIndex device);
void resetAccumulatedStats(DeviceIndex device);

/// (free, total) bytes of the device as the driver sees it.
std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device);

}  // namespace c10::musa::MUSACachingAllocator
