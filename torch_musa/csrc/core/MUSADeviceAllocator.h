#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "torch_musa/csrc/core/MUSAEvent.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace c10::musa::MUSACachingAllocator {

struct BlockPool;

/// A piece of a segment (one allocation of the driver). Pieces of a segment form a list in address
/// order.
struct Block {
  StreamId stream;  // the stream on which the memory is used without further ado
  size_t size;
  void* ptr;
  BlockPool* pool;
  size_t requested_size = 0;  // what the user asked for, before rounding
  bool allocated = false;
  bool shelved = false;  // free, but kept apart from its neighbours (see Shelves)
  bool listed = false;   // found by its address
  int event_count = 0;   // events that must pass before the block is free
  Block* prev = nullptr;
  Block* next = nullptr;
  std::unordered_set<MUSAStream> stream_uses;  // other streams it was recorded on

  bool is_split() const { return prev != nullptr || next != nullptr; }
};

struct BlockOrder {
  // Best fit within one stream: smallest sufficient size first, then lowest address against
  // fragmentation.
  bool operator()(const Block* a, const Block* b) const {
    if (a->stream != b->stream) {
      return a->stream < b->stream;
    }
    if (a->size != b->size) {
      return a->size < b->size;
    }
    return std::less<void*>()(a->ptr, b->ptr);
  }
};

struct PrivatePool;

struct BlockPool {
  explicit BlockPool(bool small, PrivatePool* owner_ = nullptr) : is_small(small), owner(owner_) {}
  std::set<Block*, BlockOrder> blocks;  // the free ones
  const bool is_small;
  PrivatePool* const owner;  // null: the device's own pools, open to everybody
};

/// Segments apart from all others: those of a graph, whose replays use their addresses again and
/// again, or of a MemPool.
struct PrivatePool {
  BlockPool small{true, this};
  BlockPool large{false, this};
  int uses = 0;  // graphs and MemPools; with none left, what is free may go back to the driver
  int64_t segments = 0;
  bool use_on_oom = false;
  bool no_split = false;
};

/// Which allocations a private pool serves while a route to it is open.
struct PoolRoute {
  MempoolId_t pool;
  std::function<bool(const MUSAStream&)> serves;
  bool captures;  // a graph is being captured, so nothing here may wait for the device
};

/// Small blocks that were freed a moment ago, by size. The next request of that size on that stream
/// takes one back as it is, without the search, the split and the merge that a block of the pool
/// costs: what an eager program does all the time.
class Shelves {
 public:
  static constexpr size_t kUnit = 512;
  static constexpr size_t kLargest = 16 * 1024;

  /// False where the block has to go to the pool.
  bool put(Block* block) {
    if (block->size > kLargest) return false;
    Shelf& shelf = shelves_[block->size / kUnit - 1];
    if (shelf.count == kDepth) return false;
    shelf.blocks[shelf.count++] = block;
    block->shelved = true;
    return true;
  }
  /// A block of exactly that size, or null.
  Block* take(size_t size, StreamId stream) {
    if (size > kLargest || size < kUnit || size % kUnit != 0) return nullptr;
    Shelf& shelf = shelves_[size / kUnit - 1];
    if (shelf.count == 0 || shelf.blocks[shelf.count - 1]->stream != stream) return nullptr;
    Block* block = shelf.blocks[--shelf.count];
    block->shelved = false;
    return block;
  }
  /// Takes everything away and hands it to `f`.
  template <typename F>
  void clear(F f) {
    for (Shelf& shelf : shelves_) {
      while (shelf.count > 0) {
        Block* block = shelf.blocks[--shelf.count];
        block->shelved = false;
        f(block);
      }
    }
  }

 private:
  static constexpr size_t kDepth = 16;
  struct Shelf {
    size_t count = 0;
    std::array<Block*, kDepth> blocks;
  };
  std::array<Shelf, kLargest / kUnit> shelves_;
};

/// Cached memory of one device. Thread-safe.
///
/// Sizes are rounded up to 512 bytes. Requests up to 1 MiB are cut from 2 MiB segments, requests up
/// to 10 MiB from 20 MiB segments, larger ones get a segment of their own (a multiple of 2 MiB). A
/// free block is split for a smaller request and merged with its free neighbours again, and is
/// reused only on the stream it was allocated on, where the order of the queue makes that safe
/// without waiting.
class MUSADeviceAllocator {
 public:
  explicit MUSADeviceAllocator(DeviceIndex device) : device_(device) {}

  /// `outside_pools`: from the device's own pools, whatever routes are open.
  void* malloc(size_t requested, MUSAStream stream, bool outside_pools = false);
  /// False, and nothing done, where `ptr` is nothing that this allocator has handed out.
  bool free(void* ptr);
  bool record_stream(void* ptr, MUSAStream stream);
  /// Gives what is cached and unused back to the driver: of one private pool, or ({0, 0}) of the
  /// device's own and of private ones that nobody uses any more.
  void empty_cache(MempoolId_t pool);

  /// A private pool lives while somebody retains it, and then until its last block is free.
  void retain_pool(MempoolId_t pool, bool use_on_oom = false, bool no_split = false);
  void release_pool(MempoolId_t pool);
  /// Number of those that retain it; 0 for a pool that is not there.
  int pool_uses(MempoolId_t pool) const;
  /// From open_route to close_route the pool serves what route.serves says. The youngest route goes
  /// first.
  void open_route(PoolRoute route);
  void close_route(MempoolId_t pool);

  CachingDeviceAllocator::DeviceStats stats();
  void reset_peak_stats();
  void reset_accumulated_stats();
  /// (free, total) bytes as the driver sees them.
  std::pair<size_t, size_t> memory_info() const;

 private:
  using Stats = CachingDeviceAllocator::DeviceStats;

  BlockPool& own_pool_for(size_t rounded) { return rounded <= kSmallRequest ? small_ : large_; }
  BlockPool& pool_for(size_t rounded, const MUSAStream& stream);
  bool capturing() const { return captures_ != 0; }
  Block* take_on_oom(size_t rounded, StreamId stream);
  void release_unused_private_pools();
  Block* take_cached(BlockPool& pool, size_t rounded, StreamId stream);
  Block* new_segment(BlockPool& pool, size_t rounded, StreamId stream);
  Block* split(Block* block, size_t rounded);
  Block* find_allocated(void* ptr) const;
  void list(Block* block);
  void unlist(Block* block);
  void release(Block* block);
  void merge_into_pool(Block* block);
  void clear_shelves();
  void merge(Block* into, Block* neighbour);
  void insert_events(Block* block);
  void process_events();
  void wait_for_events();
  void release_cached_segments();
  void release_segments(BlockPool& pool);
  [[noreturn]] void throw_out_of_memory(size_t requested);

  static constexpr size_t kSmallRequest = size_t{1} << 20;

  const DeviceIndex device_;
  mutable std::recursive_mutex mutex_;
  BlockPool small_{true};
  BlockPool large_{false};
  Shelves shelves_;
  // Blocks in users' hands, and those on the shelves, which will be there again.
  ska::flat_hash_map<void*, Block*> by_address_;
  std::map<StreamId, std::deque<std::pair<MUSAEvent, Block*>>> events_;
  std::map<MempoolId_t, std::unique_ptr<PrivatePool>> private_pools_;
  std::vector<PoolRoute> routes_;
  int captures_ = 0;                           // of the routes
  std::vector<Block*> freed_while_capturing_;  // used on other streams: their events come later
  Stats stats_;
};

}  // namespace c10::musa::MUSACachingAllocator
