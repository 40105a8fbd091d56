// The part of the allocator that keeps memory apart: pools of graphs and of MemPools, and which
// allocations go there.
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "torch_musa/csrc/core/MUSADeviceAllocator.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"

namespace c10::musa::MUSACachingAllocator {

BlockPool& MUSADeviceAllocator::pool_for(size_t rounded, const MUSAStream& stream) {
  for (auto route = routes_.rbegin(); route != routes_.rend(); ++route) {
    if (route->serves(stream)) {
      PrivatePool& pool = *private_pools_.at(route->pool);
      return rounded <= kSmallRequest ? pool.small : pool.large;
    }
  }
  return own_pool_for(rounded);
}

// The last resort of an allocation that found no memory: pools that were made to be one.
Block* MUSADeviceAllocator::take_on_oom(size_t rounded, StreamId stream) {
  for (const auto& [id, pool] : private_pools_) {
    if (!pool->use_on_oom) {
      continue;
    }
    BlockPool& blocks = rounded <= kSmallRequest ? pool->small : pool->large;
    if (Block* block = take_cached(blocks, rounded, stream)) {
      return block;
    }
  }
  return nullptr;
}

void MUSADeviceAllocator::retain_pool(MempoolId_t id, bool use_on_oom, bool no_split) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  auto& pool = private_pools_[id];
  if (pool == nullptr) {
    pool = std::make_unique<PrivatePool>();
    pool->use_on_oom = use_on_oom;
    pool->no_split = no_split;
  }
  pool->uses += 1;
}

void MUSADeviceAllocator::release_pool(MempoolId_t id) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  TORCH_INTERNAL_ASSERT(found != private_pools_.end() && found->second->uses > 0);
  PrivatePool& pool = *found->second;
  if (--pool.uses == 0 && pool.segments == 0) {
    private_pools_.erase(found);
  }
}

int MUSADeviceAllocator::pool_uses(MempoolId_t id) const {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  return found == private_pools_.end() ? 0 : found->second->uses;
}

void MUSADeviceAllocator::open_route(PoolRoute route) {
  ensure_initialized(device_);
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  TORCH_CHECK(private_pools_.count(route.pool) != 0, "There is no memory pool (", route.pool.first,
              ", ", route.pool.second, ") on musa:", static_cast<int>(device_));
  captures_ += route.captures ? 1 : 0;
  routes_.push_back(std::move(route));
}

void MUSADeviceAllocator::close_route(MempoolId_t id) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto found = std::find_if(routes_.rbegin(), routes_.rend(),
                                  [&](const PoolRoute& route) { return route.pool == id; });
  TORCH_INTERNAL_ASSERT(found != routes_.rend());
  captures_ -= found->captures ? 1 : 0;
  routes_.erase(std::next(found).base());
}

void MUSADeviceAllocator::empty_cache(MempoolId_t id) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  // Before anything is touched: memory goes back to the driver only once the device is idle.
  TORCH_CHECK(!capturing(), "empty_cache waits for musa:", static_cast<int>(device_),
              ", which may not be done while a graph is being captured there. Call it before the "
              "capture or after it");
  if (id == MempoolId_t{0, 0}) {
    release_cached_segments();
    return;
  }
  if (const auto found = private_pools_.find(id); found != private_pools_.end()) {
    wait_for_events();
    release_segments(found->second->large);
    release_segments(found->second->small);
    if (found->second->uses == 0 && found->second->segments == 0) {
      private_pools_.erase(found);
    }
  }
}

void MUSADeviceAllocator::release_unused_private_pools() {
  for (auto it = private_pools_.begin(); it != private_pools_.end();) {
    PrivatePool& pool = *it->second;
    if (pool.uses == 0) {
      release_segments(pool.large);
      release_segments(pool.small);
    }
    it = pool.uses == 0 && pool.segments == 0 ? private_pools_.erase(it) : std::next(it);
  }
}

}  // namespace c10::musa::MUSACachingAllocator
