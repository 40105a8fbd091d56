// Memory pools: device memory in the order of streams.
#pragma once

#include <cstddef>
#include <functional>

namespace musa::host {

// Calls `allocate`; where that finds no memory, once more without what the device's pools hold
// unused.
void* with_pool_memory(int device, const std::function<void*()>& allocate);

// musaFree of a pool's block; false if it is none. The device is idle.
bool free_pool_block(void* pointer);

// Gives back what a pool of the device holds beyond its release threshold: synchronizations do so.
void trim_pools(int device);

}  // namespace musa::host
