#include "Memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "Arena.h"
#include "Device.h"
#include "Fault.h"
#include "Protect.h"
#include "Stream.h"

namespace musa::host {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kRemembered = 256;  // freed blocks, for messages

// Fresh device memory holds whatever was there before. The operating system's zeros would hide
// kernels that read what nobody wrote, so blocks up to this size (a caching allocator's segments)
// start as NaNs; larger ones would cost too much to touch.
constexpr size_t kPoisonedUpTo = size_t{32} << 20;
constexpr int kPoison = 0xff;

size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Registry {
 public:
  // Never destroyed: tensors of static lifetime are freed after it would be.
  static Registry& instance() {
    static Registry* registry = new Registry;
    return *registry;
  }

  void* allocate_device(size_t bytes, int device, void* caller) {
    if (bytes == 0) return nullptr;
    const size_t size = rounded(bytes);
    char* memory = nullptr;
    {
      std::unique_lock lock(mutex_);
      require(size >= bytes && size <= device_memory(device) - used_[device],
              musaErrorMemoryAllocation);
      memory = arena(device).allocate(debug_memory ? bytes : size);
      require(memory != nullptr, musaErrorMemoryAllocation);
      used_[device] += size;
      if (debug_memory) {
        // Before anybody knows the block: other threads' work checks those that are known.
        const DeviceAccess access("musaMalloc");
        paint_red_zone(memory + bytes, Arena::with_red_zone(bytes) - bytes);
        traces_[memory] = Trace::here();
      }
      // Where red zones are watched, not a byte more than was asked for.
      insert({memory, debug_memory ? bytes : size, Kind::DEVICE, device, 0, caller});
    }
    if (size <= kPoisonedUpTo) {
      const DeviceAccess access("musaMalloc");
      std::memset(memory, kPoison, debug_memory ? bytes : size);
    }
    return memory;
  }

  void* allocate_host(size_t bytes, Kind kind, int device, unsigned int flags, void* caller) {
    if (bytes == 0) return nullptr;
    const size_t size = rounded(bytes);
    require(size >= bytes, musaErrorMemoryAllocation);
    std::unique_lock lock(mutex_);
    const bool counts = kind == Kind::MANAGED;
    require(!counts || size <= device_memory(device) - used_[device], musaErrorMemoryAllocation);
    void* memory = std::aligned_alloc(kAlignment, size);
    require(memory != nullptr, musaErrorMemoryAllocation);
    if (counts) used_[device] += size;
    insert({static_cast<char*>(memory), counts ? size : bytes, kind, device, flags, caller});
    return memory;
  }

  void add(const Block& block, musaError_t error) {
    std::unique_lock lock(mutex_);
    require(!overlaps(block.begin, block.bytes), error);
    insert(block);
  }

  // Only a block's beginning names it.
  void free_device(void* pointer) {
    std::unique_lock lock(mutex_);
    const Block block = remove(pointer, musaErrorInvalidValue, [](const Block& b) {
      return b.kind == Kind::DEVICE || b.kind == Kind::MANAGED;
    });
    used_[block.device] -= rounded(block.bytes);
    if (block.kind == Kind::MANAGED) {
      std::free(block.begin);
      return;
    }
    if (debug_memory) {
      check_red_zone(block, nullptr);
      traces_.erase(block.begin);
    }
    freed_.push_back(block);
    if (freed_.size() > kRemembered) freed_.pop_front();
    arena(block.device).free(block.begin, block.bytes);
  }

  void free_host(void* pointer) {
    std::unique_lock lock(mutex_);
    const Block block = remove(pointer, musaErrorInvalidValue,
                               [](const Block& b) { return b.kind == Kind::PINNED; });
    std::free(block.begin);
  }

  Block forget(void* pointer, Kind kind, musaError_t error) {
    std::unique_lock lock(mutex_);
    return remove(pointer, error, [kind](const Block& b) { return b.kind == kind; });
  }

  std::optional<Block> find(const void* pointer) const {
    std::shared_lock lock(mutex_);
    return find_locked(pointer);
  }

  bool touches_device_addresses(const void* pointer, size_t bytes) const {
    std::shared_lock lock(mutex_);
    return std::any_of(arenas_.begin(), arenas_.end(),
                       [=](const auto& home) { return home && home->touches(pointer, bytes); });
  }

  // Changes whenever a block comes or goes.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  size_t used(int device) const {
    std::shared_lock lock(mutex_);
    return used_[device];
  }

  FilePlace file_place(const Block& block) {
    std::shared_lock lock(mutex_);
    Arena& home = arena(block.device);
    return {home.file(), home.offset(block.begin)};
  }

  void check_red_zones(int device, const char* work) {
    std::shared_lock lock(mutex_);
    const DeviceAccess access("red zone check");  // once, not for every block
    for (const auto& [begin, block] : blocks_) {
      if (block.kind == Kind::DEVICE && block.device == device) check_red_zone(block, work);
    }
  }

  bool describe_fault(const void* pointer, FaultPlace* place) const {
    std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    *place = {};
    for (const auto& home : arenas_) place->device_memory |= home && home->holds(pointer);
    if (const auto block = find_locked(pointer); block && block->on_device()) {
      *place = {true, *block, false, true, trace_of(*block)};
      return true;
    }
    if (!place->device_memory) return true;
    const char* address = static_cast<const char*>(pointer);
    for (auto block = freed_.rbegin(); block != freed_.rend(); ++block) {
      if (block->holds(pointer, 1)) {
        *place = {true, *block, true, true, {}};
        return true;
      }
    }
    // Beyond an end: the block before it, where that is near.
    auto next = blocks_.upper_bound(address);
    if (next != blocks_.begin()) {
      const Block& block = std::prev(next)->second;
      if (block.on_device() && address < block.end() + (1 << 20)) {
        *place = {true, block, false, true, trace_of(block)};
      }
    }
    return true;
  }

 private:
  Registry() { install_fault_handler(); }

  Arena& arena(int device) {
    auto& home = arenas_[static_cast<size_t>(device)];
    if (!home) {
      home = std::make_unique<Arena>(device_memory(device));
      forbid_forks();
    }
    return *home;
  }

  Trace trace_of(const Block& block) const {
    const auto trace = traces_.find(block.begin);
    return trace == traces_.end() ? Trace{} : trace->second;
  }

  void insert(const Block& block) {
    blocks_.emplace(block.begin, block);
    version_.fetch_add(1, std::memory_order_release);
  }

  std::optional<Block> find_locked(const void* pointer) const {
    auto next = blocks_.upper_bound(static_cast<const char*>(pointer));
    if (next == blocks_.begin()) return std::nullopt;
    const Block& block = std::prev(next)->second;
    if (static_cast<const char*>(pointer) >= block.end()) return std::nullopt;
    return block;
  }

  bool overlaps(const char* begin, size_t bytes) const {
    auto next = blocks_.lower_bound(begin);
    if (next != blocks_.end() && next->second.begin < begin + bytes) return true;
    return next != blocks_.begin() && std::prev(next)->second.end() > begin;
  }

  template <typename Predicate>
  Block remove(void* pointer, musaError_t error, Predicate is_right_kind) {
    auto found = blocks_.find(static_cast<const char*>(pointer));
    require(found != blocks_.end() && is_right_kind(found->second), error);
    const Block block = found->second;
    blocks_.erase(found);
    version_.fetch_add(1, std::memory_order_release);
    return block;
  }

  void check_red_zone(const Block& block, const char* work) const {
    const DeviceAccess access("red zone check");
    const size_t size = Arena::with_red_zone(block.bytes) - block.bytes;
    size_t offset = 0;
    if (red_zone_intact(block.end(), size, &offset)) return;
    report_overrun(block, offset, work, trace_of(block));
    paint_red_zone(block.end(), size);  // once is enough
    set_sticky_error(musaErrorIllegalAddress);
  }

  mutable std::shared_mutex mutex_;
  std::atomic<uint64_t> version_{1};
  std::map<const char*, Block> blocks_;
  std::map<const char*, Trace> traces_;  // debug_memory: who allocated
  std::deque<Block> freed_;
  std::vector<size_t> used_ = std::vector<size_t>(static_cast<size_t>(device_count()));
  std::vector<std::unique_ptr<Arena>> arenas_ =
      std::vector<std::unique_ptr<Arena>>(static_cast<size_t>(device_count()));
};

}  // namespace

std::optional<Block> find_block(const void* pointer) { return Registry::instance().find(pointer); }

bool touches_device_addresses(const void* pointer, size_t bytes) {
  return Registry::instance().touches_device_addresses(pointer, bytes);
}

void* allocate_device(size_t bytes, int device, void* caller) {
  return Registry::instance().allocate_device(bytes, device, caller);
}

void* allocate_host(size_t bytes, Kind kind, int device, unsigned int flags, void* caller) {
  return Registry::instance().allocate_host(bytes, kind, device, flags, caller);
}

void free_host(void* pointer) { Registry::instance().free_host(pointer); }

void register_host(const Block& block) {
  Registry::instance().add(block, musaErrorHostMemoryAlreadyRegistered);
}

void unregister_host(void* pointer) {
  (void)Registry::instance().forget(pointer, Kind::REGISTERED, musaErrorHostMemoryNotRegistered);
}

void free_device(void* pointer) {
  forget_export(pointer);
  Registry::instance().free_device(pointer);
}

size_t used_memory(int device) { return Registry::instance().used(device); }

void add_imported(const Block& block) { Registry::instance().add(block, musaErrorInvalidValue); }

Block remove_imported(void* pointer) {
  return Registry::instance().forget(pointer, Kind::IMPORTED, musaErrorInvalidValue);
}

FilePlace file_place(const Block& block) { return Registry::instance().file_place(block); }

void check_red_zones(int device, const char* work) {
  if (debug_memory) Registry::instance().check_red_zones(device, work);
}

bool describe_fault(const void* pointer, FaultPlace* place) {
  return Registry::instance().describe_fault(pointer, place);
}

namespace {

// The block that the thread asked about last.
struct Recent {
  uint64_t version;
  Block block;
};
constinit thread_local Recent recent MUSART_FAST_TLS = {};

}  // namespace

bool device_accessible(const void* pointer, size_t bytes, int device) {
  // The operands of a call tend to lie in one block.
  const uint64_t version = Registry::instance().version();
  if (recent.version != version || !recent.block.holds(pointer, bytes)) {
    const std::optional<Block> found = find_block(pointer);
    if (!found || !found->holds(pointer, bytes)) return false;
    recent = {version, *found};
  }
  const Block& block = recent.block;
  return !block.on_device() || block.device == device || peer_enabled(device, block.device);
}

}  // namespace musa::host
