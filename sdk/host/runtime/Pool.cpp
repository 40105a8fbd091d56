#include "Pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "Capture.h"
#include "Device.h"
#include "Memory.h"
#include "Stream.h"

namespace musa::host {
namespace {

constexpr size_t kGranularity = 512;

// How much bigger than asked for a reused block may be.
constexpr size_t kWaste = 2;

struct Stat {
  uint64_t current = 0;
  uint64_t high = 0;

  void add(uint64_t bytes) {
    current += bytes;
    high = std::max(high, current);
  }
};

}  // namespace
}  // namespace musa::host

struct musaMemPool {
  explicit musaMemPool(int device_) : device(device_) {}

  // A block that somebody freed, and the place in his stream where he did.
  struct Unused {
    void* pointer;
    std::shared_ptr<musaStream> stream;
    std::shared_ptr<musa::host::Mark> mark;
  };
  using UnusedBlock = std::multimap<size_t, Unused>::iterator;

  const int device;
  std::mutex mutex;
  std::multimap<size_t, Unused> unused;  // by bytes
  std::unordered_set<void*> freed;       // their addresses
  std::unordered_map<void*, size_t> used;
  int follow_events = 1;
  int opportunistic = 1;
  int internal_dependencies = 1;
  uint64_t release_threshold = 0;
  musa::host::Stat reserved_memory;
  musa::host::Stat used_memory;
  std::atomic<bool> has_unused{false};

  void* allocate(size_t bytes, const std::shared_ptr<musaStream>& stream, void* caller);
  void free(void* pointer, const std::shared_ptr<musaStream>& stream);
  // Gives memory back until at most `keep` bytes are reserved; what a stream has yet to free stays.
  void trim(uint64_t keep);
  bool drop(void* pointer);

 private:
  UnusedBlock find_unused(size_t bytes, const std::shared_ptr<musaStream>& stream);
  UnusedBlock erase(UnusedBlock block);
};

namespace musa::host {
namespace {

std::vector<std::unique_ptr<musaMemPool>>& pools() {
  static auto* all = [] {
    auto* list = new std::vector<std::unique_ptr<musaMemPool>>;
    for (int device = 0; device < device_count(); ++device) {
      list->push_back(std::make_unique<musaMemPool>(device));
    }
    return list;
  }();
  return *all;
}

musaMemPool& pool_of(int device) { return *pools()[static_cast<size_t>(device)]; }

musaMemPool& find_pool(musaMemPool_t handle) {
  for (const auto& pool : pools()) {
    if (pool.get() == handle) return *pool;
  }
  throw Failure{musaErrorInvalidValue};
}

}  // namespace

void* with_pool_memory(int device, const std::function<void*()>& allocate) {
  try {
    return allocate();
  } catch (const Failure& failure) {
    musaMemPool& pool = pool_of(device);
    if (failure.error != musaErrorMemoryAllocation || !pool.has_unused.load()) throw;
    synchronize_device(device);
    pool.trim(0);
    return allocate();
  }
}

bool free_pool_block(void* pointer) {
  for (const auto& pool : pools()) {
    if (pool->drop(pointer)) return true;
  }
  return false;
}

void trim_pools(int device) {
  musaMemPool& pool = pool_of(device);
  if (pool.has_unused.load(std::memory_order_relaxed)) pool.trim(pool.release_threshold);
}

}  // namespace musa::host

void* musaMemPool::allocate(size_t bytes, const std::shared_ptr<musaStream>& stream, void* caller) {
  bytes =
      (bytes + musa::host::kGranularity - 1) / musa::host::kGranularity * musa::host::kGranularity;
  {
    std::lock_guard lock(mutex);
    const auto found = find_unused(bytes, stream);
    if (found != unused.end()) {
      const auto [size, block] = *found;
      void* pointer = block.pointer;
      erase(found);
      used.emplace(pointer, size);
      used_memory.add(size);
      if (block.stream != stream && !block.mark->reached()) {
        musa::host::submit(*stream, {[mark = block.mark] { mark->wait(); },
                                     musa::host::Task::Kind::MARK, "reuse of memory"});
      }
      return pointer;
    }
  }
  void* pointer = musa::host::with_pool_memory(
      device, [&] { return musa::host::allocate_device(bytes, device, caller); });
  std::lock_guard lock(mutex);
  used.emplace(pointer, bytes);
  reserved_memory.add(bytes);
  used_memory.add(bytes);
  return pointer;
}

// The stream's own blocks come first, then those that nobody uses any more, then those that it
// would have to wait for; among equals the smallest. Only so many are looked at.
musaMemPool::UnusedBlock musaMemPool::find_unused(size_t bytes,
                                                  const std::shared_ptr<musaStream>& stream) {
  constexpr int kLookedAt = 32;
  UnusedBlock reached = unused.end();
  UnusedBlock pending = unused.end();
  int looked_at = 0;
  for (auto it = unused.lower_bound(bytes);
       it != unused.end() && it->first <= bytes * musa::host::kWaste && looked_at < kLookedAt;
       ++it, ++looked_at) {
    if (it->second.stream == stream) return it;
    if (reached == unused.end() && it->second.mark->reached()) reached = it;
    if (pending == unused.end()) pending = it;
  }
  if (opportunistic != 0 && reached != unused.end()) return reached;
  return internal_dependencies != 0 ? pending : unused.end();
}

musaMemPool::UnusedBlock musaMemPool::erase(UnusedBlock block) {
  freed.erase(block->second.pointer);
  block = unused.erase(block);
  has_unused = !unused.empty();
  return block;
}

// The mark is in the stream before anybody can take the block: two streams that took each other's
// blocks first would wait for marks behind their own waits, for ever.
void musaMemPool::free(void* pointer, const std::shared_ptr<musaStream>& stream) {
  size_t size = 0;
  {
    std::lock_guard lock(mutex);
    const auto found = used.find(pointer);
    musa::host::require(found != used.end());
    size = found->second;
    used.erase(found);
    freed.insert(pointer);
  }
  auto mark = std::make_shared<musa::host::Mark>();
  try {
    musa::host::submit(*stream,
                       {[mark] { mark->reach(); }, musa::host::Task::Kind::MARK, "free of memory"});
  } catch (...) {
    std::lock_guard lock(mutex);
    freed.erase(pointer);
    used.emplace(pointer, size);
    throw;
  }
  std::lock_guard lock(mutex);
  unused.emplace(size, Unused{pointer, stream, std::move(mark)});
  used_memory.current -= size;
  has_unused = true;
}

void musaMemPool::trim(uint64_t keep) {
  std::lock_guard lock(mutex);
  for (auto it = unused.begin(); it != unused.end() && reserved_memory.current > keep;) {
    if (!it->second.mark->reached()) {
      ++it;
      continue;
    }
    musa::host::free_device(it->second.pointer);
    reserved_memory.current -= it->first;
    it = erase(it);
  }
}

bool musaMemPool::drop(void* pointer) {
  std::lock_guard lock(mutex);
  const auto found = used.find(pointer);
  if (found == used.end()) {
    // Freed already, and not by whom it was allocated for since: an error of the caller's.
    musa::host::require(freed.count(pointer) == 0);
    return false;
  }
  musa::host::free_device(pointer);
  used_memory.current -= found->second;
  reserved_memory.current -= found->second;
  used.erase(found);
  return true;
}

using musa::host::api;
using musa::host::current_device;
using musa::host::find_pool;
using musa::host::pool_of;
using musa::host::require;
using musa::host::resolve;

musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device) {
  return api([&] {
    require(pool != nullptr);
    musa::host::require_device(device);
    *pool = &pool_of(device);
  });
}

musaError_t musaDeviceGetMemPool(musaMemPool_t* pool, int device) {
  return musaDeviceGetDefaultMemPool(pool, device);
}

// Each device has one pool so far: only that can be chosen.
musaError_t musaDeviceSetMemPool(int device, musaMemPool_t pool) {
  return api([&] {
    musa::host::require_device(device);
    require(find_pool(pool).device == device);
  });
}

namespace {

musaError_t allocate_from(void** pointer, size_t bytes, musaMemPool_t pool, musaStream_t stream,
                          void* caller) {
  return api([&] {
    require(pointer != nullptr);
    *pointer = nullptr;
    const auto target = resolve(stream, current_device());
    musa::host::require_not_capturing(*target);
    musaMemPool& from = pool == nullptr ? pool_of(target->device) : find_pool(pool);
    require(bytes <= musa::host::device_memory(from.device), musaErrorMemoryAllocation);
    if (bytes > 0) *pointer = from.allocate(bytes, target, caller);
  });
}

}  // namespace

musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream) {
  return allocate_from(pointer, bytes, nullptr, stream, __builtin_return_address(0));
}

musaError_t musaMallocFromPoolAsync(void** pointer, size_t bytes, musaMemPool_t pool,
                                    musaStream_t stream) {
  if (pool == nullptr) return api([] { require(false); });
  return allocate_from(pointer, bytes, pool, stream, __builtin_return_address(0));
}

musaError_t musaFreeAsync(void* pointer, musaStream_t stream) {
  return api([&] {
    const auto target = resolve(stream, current_device());
    if (pointer == nullptr) return;
    musa::host::require_not_capturing(*target);
    const auto block = musa::host::find_block(pointer);
    require(block && block->begin == pointer && block->kind == musa::host::Kind::DEVICE);
    {
      // musaMalloc's memory is no pool's, but may be freed so: it joins the pool.
      musaMemPool& pool = pool_of(block->device);
      std::lock_guard lock(pool.mutex);
      require(pool.freed.count(pointer) == 0);
      if (pool.used.emplace(pointer, block->bytes).second) {
        pool.reserved_memory.add(block->bytes);
        pool.used_memory.add(block->bytes);
      }
    }
    pool_of(block->device).free(pointer, target);
  });
}

musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return api([&] {
    require(value != nullptr);
    musaMemPool& found = find_pool(pool);
    std::lock_guard lock(found.mutex);
    switch (attribute) {
      case musaMemPoolReuseFollowEventDependencies:
        found.follow_events = *static_cast<int*>(value);
        return;
      case musaMemPoolReuseAllowOpportunistic:
        found.opportunistic = *static_cast<int*>(value);
        return;
      case musaMemPoolReuseAllowInternalDependencies:
        found.internal_dependencies = *static_cast<int*>(value);
        return;
      case musaMemPoolAttrReleaseThreshold:
        found.release_threshold = *static_cast<uint64_t*>(value);
        return;
      case musaMemPoolAttrReservedMemHigh:
        require(*static_cast<uint64_t*>(value) == 0);
        found.reserved_memory.high = found.reserved_memory.current;
        return;
      case musaMemPoolAttrUsedMemHigh:
        require(*static_cast<uint64_t*>(value) == 0);
        found.used_memory.high = found.used_memory.current;
        return;
      default:
        require(false);
    }
  });
}

musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return api([&] {
    require(value != nullptr);
    musaMemPool& found = find_pool(pool);
    std::lock_guard lock(found.mutex);
    const auto give = [value](auto answer) { *static_cast<decltype(answer)*>(value) = answer; };
    switch (attribute) {
      case musaMemPoolReuseFollowEventDependencies:
        return give(found.follow_events);
      case musaMemPoolReuseAllowOpportunistic:
        return give(found.opportunistic);
      case musaMemPoolReuseAllowInternalDependencies:
        return give(found.internal_dependencies);
      case musaMemPoolAttrReleaseThreshold:
        return give(found.release_threshold);
      case musaMemPoolAttrReservedMemCurrent:
        return give(found.reserved_memory.current);
      case musaMemPoolAttrReservedMemHigh:
        return give(found.reserved_memory.high);
      case musaMemPoolAttrUsedMemCurrent:
        return give(found.used_memory.current);
      case musaMemPoolAttrUsedMemHigh:
        return give(found.used_memory.high);
    }
    require(false);
  });
}

musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t keep) {
  return api([&] { find_pool(pool).trim(keep); });
}
