#include "torch_musa/csrc/core/MUSADeviceAllocator.h"

#include <musa_runtime.h>

#include <cstdlib>

#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace c10::musa::MUSACachingAllocator {
namespace {

using c10::CachingAllocator::format_size;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGranularity = 512;         // of every block
constexpr size_t kSmallSegment = 2 * kMiB;   // holds requests of up to 1 MiB
constexpr size_t kLargeSegment = 20 * kMiB;  // holds requests of 1 to 10 MiB
constexpr size_t kOwnSegment = 10 * kMiB;    // from here on a request gets its own segment
constexpr size_t kSegmentGranularity = 2 * kMiB;
constexpr size_t kLargestRequest = size_t{1}
                                   << 60;  // beyond any device; keeps the rounding from overflowing

// PYTORCH_NO_MUSA_MEMORY_CACHING, whatever its value: every tensor gets memory of the driver's own
// and gives it back at once, so that a memory checker sees where tensors begin and end.
bool caching() {
  static const bool value = std::getenv("PYTORCH_NO_MUSA_MEMORY_CACHING") == nullptr;
  return value;
}

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t round_request(size_t requested) {
  if (!caching()) {
    return std::max(requested, size_t{1});
  }
  return std::max(kGranularity, round_up(requested, kGranularity));
}

size_t segment_size(size_t rounded, bool is_small) {
  if (!caching()) {
    return rounded;
  }
  if (is_small) {
    return kSmallSegment;
  }
  return rounded < kOwnSegment ? kLargeSegment : round_up(rounded, kSegmentGranularity);
}

// The rest must be worth keeping: any whole unit in the small pool, more than a small request in
// the large one (below that the rest would be a large-pool block that no large request fits).
bool worth_splitting(const Block& block, size_t rounded) {
  if (!caching()) {
    return false;
  }
  if (block.pool->owner != nullptr && block.pool->owner->no_split) {
    return false;
  }
  const size_t rest = block.size - rounded;
  return block.pool->is_small ? rest >= kGranularity : rest > kMiB;
}

StatType pool_type(const BlockPool& pool) {
  return pool.is_small ? StatType::SMALL_POOL : StatType::LARGE_POOL;
}

// Each number is kept for the pool and for both together. Ten of them in the life of a block: the
// calls would cost more than the sums.
C10_ALWAYS_INLINE void increase(StatArray& stat, size_t amount, const BlockPool& pool) {
  stat[static_cast<size_t>(StatType::AGGREGATE)].increase(amount);
  stat[static_cast<size_t>(pool_type(pool))].increase(amount);
}
C10_ALWAYS_INLINE void decrease(StatArray& stat, size_t amount, const BlockPool& pool) {
  stat[static_cast<size_t>(StatType::AGGREGATE)].decrease(amount);
  stat[static_cast<size_t>(pool_type(pool))].decrease(amount);
}

template <typename F>
void for_each_stat_array(CachingDeviceAllocator::DeviceStats& stats, F f) {
  for (StatArray* array : {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split,
                           &stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
                           &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (Stat& stat : *array) {
      f(stat);
    }
  }
}

// The driver allocates in the middle of a capture if the capturing thread says that it knows what
// it does: the memory is the graph's own. A thread that has nothing to do with the capture is
// refused.
musaError_t malloc_in_capture(void** ptr, size_t size, bool somebody_captures) {
  if (!somebody_captures || !getCurrentMUSAStream().is_capturing()) {
    return musaMalloc(ptr, size);
  }
  auto mode = musaStreamCaptureModeRelaxed;
  C10_MUSA_CHECK(musaThreadExchangeStreamCaptureMode(&mode));
  const musaError_t error = musaMalloc(ptr, size);
  C10_MUSA_CHECK(musaThreadExchangeStreamCaptureMode(&mode));
  return error;
}

int64_t aggregate(const StatArray& stat) {
  return stat[static_cast<size_t>(StatType::AGGREGATE)].current;
}

}  // namespace

void* MUSADeviceAllocator::malloc(size_t requested, MUSAStream stream, bool outside_pools) {
  ensure_initialized(device_);
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (requested >= kLargestRequest) {
    throw_out_of_memory(requested);
  }
  if (!capturing()) {
    if (!events_.empty() || !freed_while_capturing_.empty()) {
      process_events();
    }
    if (!caching()) {
      release_segments(large_);
      release_segments(small_);
    }
  }

  const size_t rounded = round_request(requested);
  BlockPool& pool =
      routes_.empty() || outside_pools ? own_pool_for(rounded) : pool_for(rounded, stream);
  Block* block = take_cached(pool, rounded, stream.id());
  if (block == nullptr) {
    // What lies on the shelves may add up to it.
    clear_shelves();
    block = take_cached(pool, rounded, stream.id());
  }
  if (block == nullptr) {
    block = new_segment(pool, rounded, stream.id());
  }
  if (block == nullptr && !capturing()) {
    // The driver has no such piece: what this process holds unused may be it.
    stats_.num_alloc_retries += 1;
    release_cached_segments();
    block = new_segment(pool, rounded, stream.id());
  }
  if (block == nullptr) {
    block = take_on_oom(rounded, stream.id());
  }
  if (block == nullptr) {
    throw_out_of_memory(requested);
  }
  if (worth_splitting(*block, rounded)) {
    block = split(block, rounded);
  }

  list(block);
  block->allocated = true;
  block->requested_size = requested;
  const BlockPool& home = *block->pool;
  increase(stats_.allocation, 1, home);
  increase(stats_.allocated_bytes, block->size, home);
  increase(stats_.requested_bytes, block->requested_size, home);
  increase(stats_.active, 1, home);
  increase(stats_.active_bytes, block->size, home);
  c10::reportMemoryUsageToProfiler(
      block->ptr, static_cast<int64_t>(block->size), aggregate(stats_.allocated_bytes),
      aggregate(stats_.reserved_bytes), Device(DeviceType::PrivateUse1, device_));
  return block->ptr;
}

bool MUSADeviceAllocator::free(void* ptr) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  Block* block = find_allocated(ptr);
  if (block == nullptr) {
    return false;
  }
  block->allocated = false;
  BlockPool& pool = *block->pool;
  decrease(stats_.allocation, 1, pool);
  decrease(stats_.allocated_bytes, block->size, pool);
  decrease(stats_.requested_bytes, block->requested_size, pool);
  c10::reportMemoryUsageToProfiler(
      block->ptr, -static_cast<int64_t>(block->size), aggregate(stats_.allocated_bytes),
      aggregate(stats_.reserved_bytes), Device(DeviceType::PrivateUse1, device_));
  if (!block->stream_uses.empty()) {
    if (capturing()) {
      freed_while_capturing_.push_back(block);
    } else {
      insert_events(block);
    }
    return true;
  }
  release(block);
  if (!caching() && pool.owner == nullptr && !capturing()) {
    // Destructors free. Where the device broke its memory is lost with it, and the next call that
    // may fail says so.
    try {
      release_segments(pool);
    } catch (const c10::Error&) {
    }
  }
  return true;
}

bool MUSADeviceAllocator::record_stream(void* ptr, MUSAStream stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  Block* block = find_allocated(ptr);
  if (block == nullptr) {
    return false;
  }
  if (stream.id() != block->stream) {
    block->stream_uses.insert(stream);
  }
  return true;
}

Block* MUSADeviceAllocator::find_allocated(void* ptr) const {
  const auto it = by_address_.find(ptr);
  return it != by_address_.end() && it->second->allocated ? it->second : nullptr;
}

void MUSADeviceAllocator::list(Block* block) {
  if (!block->listed) {
    by_address_.emplace(block->ptr, block);
    block->listed = true;
  }
}

void MUSADeviceAllocator::unlist(Block* block) {
  if (block->listed) {
    by_address_.erase(block->ptr);
    block->listed = false;
  }
}

Block* MUSADeviceAllocator::take_cached(BlockPool& pool, size_t rounded, StreamId stream) {
  Block* block = pool.owner == nullptr ? shelves_.take(rounded, stream) : nullptr;
  if (block == nullptr) {
    Block key{stream, rounded, nullptr, &pool};
    const auto it = pool.blocks.lower_bound(&key);
    if (it == pool.blocks.end() || (*it)->stream != stream) {
      return nullptr;
    }
    block = *it;
    pool.blocks.erase(it);
  }
  if (block->is_split()) {
    decrease(stats_.inactive_split, 1, pool);
    decrease(stats_.inactive_split_bytes, block->size, pool);
  }
  return block;
}

Block* MUSADeviceAllocator::new_segment(BlockPool& pool, size_t rounded, StreamId stream) {
  const size_t size = segment_size(rounded, pool.is_small);
  void* ptr = nullptr;
  const MUSAGuard guard(device_);
  const musaError_t error = malloc_in_capture(&ptr, size, capturing());
  if (error == musaErrorMemoryAllocation) {
    static_cast<void>(
        musaGetLastError());  // the caller handles it: no later launch check may see it
    return nullptr;
  }
  C10_MUSA_CHECK(error);
  stats_.num_device_alloc += 1;
  increase(stats_.segment, 1, pool);
  increase(stats_.reserved_bytes, size, pool);
  if (pool.owner != nullptr) {
    pool.owner->segments += 1;
  }
  return new Block{stream, size, ptr, &pool};
}

Block* MUSADeviceAllocator::split(Block* block, size_t rounded) {
  BlockPool& pool = *block->pool;
  auto* rest = new Block{block->stream, block->size - rounded,
                         static_cast<char*>(block->ptr) + rounded, &pool};
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) {
    rest->next->prev = rest;
  }
  block->next = rest;
  block->size = rounded;
  pool.blocks.insert(rest);
  increase(stats_.inactive_split, 1, pool);
  increase(stats_.inactive_split_bytes, rest->size, pool);
  return block;
}

void MUSADeviceAllocator::release(Block* block) {
  TORCH_INTERNAL_ASSERT(!block->allocated && block->event_count == 0 && block->stream_uses.empty());
  const BlockPool& pool = *block->pool;
  decrease(stats_.active, 1, pool);
  decrease(stats_.active_bytes, block->size, pool);
  if (!caching() || pool.owner != nullptr || !shelves_.put(block)) {
    merge_into_pool(block);
  } else if (block->is_split()) {
    increase(stats_.inactive_split, 1, pool);
    increase(stats_.inactive_split_bytes, block->size, pool);
  }
}

void MUSADeviceAllocator::merge_into_pool(Block* block) {
  BlockPool& pool = *block->pool;
  unlist(block);
  for (Block* neighbour : {block->prev, block->next}) {
    const bool is_free = neighbour != nullptr && !neighbour->allocated && !neighbour->shelved &&
                         neighbour->event_count == 0 && neighbour->stream_uses.empty();
    if (is_free) {
      merge(block, neighbour);
    }
  }
  pool.blocks.insert(block);
  if (block->is_split()) {
    increase(stats_.inactive_split, 1, pool);
    increase(stats_.inactive_split_bytes, block->size, pool);
  }
}

void MUSADeviceAllocator::clear_shelves() {
  shelves_.clear([this](Block* block) {
    if (block->is_split()) {
      decrease(stats_.inactive_split, 1, *block->pool);
      decrease(stats_.inactive_split_bytes, block->size, *block->pool);
    }
    merge_into_pool(block);
  });
}

void MUSADeviceAllocator::merge(Block* into, Block* neighbour) {
  BlockPool& pool = *into->pool;
  pool.blocks.erase(neighbour);
  decrease(stats_.inactive_split, 1, pool);
  decrease(stats_.inactive_split_bytes, neighbour->size, pool);
  if (into->prev == neighbour) {
    into->ptr = neighbour->ptr;
    into->prev = neighbour->prev;
    if (into->prev != nullptr) {
      into->prev->next = into;
    }
  } else {
    into->next = neighbour->next;
    if (into->next != nullptr) {
      into->next->prev = into;
    }
  }
  into->size += neighbour->size;
  delete neighbour;
}

void MUSADeviceAllocator::insert_events(Block* block) {
  const auto streams = std::exchange(block->stream_uses, {});
  for (const MUSAStream& stream : streams) {
    MUSAEvent event;
    event.record(stream);
    block->event_count += 1;
    events_[stream.id()].emplace_back(std::move(event), block);
  }
}

void MUSADeviceAllocator::process_events() {
  for (Block* block : std::exchange(freed_while_capturing_, {})) {
    insert_events(block);
  }
  for (auto it = events_.begin(); it != events_.end();) {
    auto& queue =
        it->second;  // events of one stream pass in order, so the first open one ends the scan
    while (!queue.empty() && queue.front().first.query()) {
      Block* block = queue.front().second;
      queue.pop_front();
      if (--block->event_count == 0) {
        release(block);
      }
    }
    it = queue.empty() ? events_.erase(it) : std::next(it);
  }
}

void MUSADeviceAllocator::wait_for_events() {
  stats_.num_sync_all_streams += 1;
  process_events();
  for (auto& [stream, queue] : events_) {
    for (auto& [event, block] : queue) {
      event.synchronize();
    }
  }
  process_events();
}

void MUSADeviceAllocator::release_cached_segments() {
  wait_for_events();
  clear_shelves();
  release_segments(large_);
  release_segments(small_);
  release_unused_private_pools();
}

void MUSADeviceAllocator::release_segments(BlockPool& pool) {
  const MUSAGuard guard(device_);
  // Work that still uses freed memory, on the stream that it was allocated on, may be queued.
  bool synchronized = false;
  for (auto it = pool.blocks.begin(); it != pool.blocks.end();) {
    Block* block = *it;
    if (block->is_split()) {
      ++it;
      continue;
    }
    if (!std::exchange(synchronized, true)) {
      device_synchronize();
    }
    C10_MUSA_CHECK(musaFree(block->ptr));
    stats_.num_device_free += 1;
    decrease(stats_.segment, 1, pool);
    decrease(stats_.reserved_bytes, block->size, pool);
    if (pool.owner != nullptr) {
      pool.owner->segments -= 1;
    }
    it = pool.blocks.erase(it);
    delete block;
  }
}

void MUSADeviceAllocator::throw_out_of_memory(size_t requested) {
  stats_.num_ooms += 1;
  const auto [free_bytes, total_bytes] = memory_info();
  const auto allocated = static_cast<size_t>(aggregate(stats_.allocated_bytes));
  const auto reserved = static_cast<size_t>(aggregate(stats_.reserved_bytes));
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(requested), allocated, reserved,
                                   Device(DeviceType::PrivateUse1, device_));
  TORCH_CHECK_WITH(OutOfMemoryError, false, "MUSA out of memory. Tried to allocate ",
                   requested >= kLargestRequest ? "more than 1EB memory" : format_size(requested),
                   ". GPU ", static_cast<int>(device_), " has a total capacity of ",
                   format_size(total_bytes), " of which ", format_size(free_bytes),
                   " is free. Of the allocated memory ", format_size(allocated),
                   " is allocated by PyTorch, and ", format_size(reserved - allocated),
                   " is reserved by PyTorch but unallocated.");
}

CachingDeviceAllocator::DeviceStats MUSADeviceAllocator::stats() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  clear_shelves();  // so that the numbers say how the memory lies
  return stats_;
}

void MUSADeviceAllocator::reset_peak_stats() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  for_each_stat_array(stats_, [](Stat& stat) { stat.reset_peak(); });
}

void MUSADeviceAllocator::reset_accumulated_stats() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  for_each_stat_array(stats_, [](Stat& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = 0;
  stats_.num_ooms = 0;
  stats_.num_sync_all_streams = 0;
  stats_.num_device_alloc = 0;
  stats_.num_device_free = 0;
}

std::pair<size_t, size_t> MUSADeviceAllocator::memory_info() const {
  const MUSAGuard guard(device_);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  C10_MUSA_CHECK(musaMemGetInfo(&free_bytes, &total_bytes));
  return {free_bytes, total_bytes};
}

}  // namespace c10::musa::MUSACachingAllocator
