#include "Memory.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "Device.h"
#include "Stream.h"

namespace musa::host {
namespace {

constexpr size_t kAlignment = 256;

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

  void* allocate_device(size_t bytes, int device) {
    if (bytes == 0) return nullptr;
    const size_t size = rounded(bytes);
    std::unique_lock lock(mutex_);
    require(size >= bytes && size <= device_memory() - used_[device], musaErrorMemoryAllocation);
    void* memory = std::aligned_alloc(kAlignment, size);
    require(memory != nullptr, musaErrorMemoryAllocation);
    if (size <= kPoisonedUpTo) std::memset(memory, kPoison, size);
    used_[device] += size;
    insert({static_cast<char*>(memory), size, /*on_device=*/true, /*registered=*/false, device});
    return memory;
  }

  void* allocate_host(size_t bytes, int device) {
    if (bytes == 0) return nullptr;
    require(rounded(bytes) >= bytes, musaErrorMemoryAllocation);
    void* memory = std::aligned_alloc(kAlignment, rounded(bytes));
    require(memory != nullptr, musaErrorMemoryAllocation);
    std::unique_lock lock(mutex_);
    insert({static_cast<char*>(memory), bytes, /*on_device=*/false, /*registered=*/false, device});
    return memory;
  }

  void register_host(void* pointer, size_t bytes, int device) {
    char* begin = static_cast<char*>(pointer);
    std::unique_lock lock(mutex_);
    require(!overlaps(begin, bytes), musaErrorHostMemoryAlreadyRegistered);
    insert({begin, bytes, /*on_device=*/false, /*registered=*/true, device});
  }

  // Only a block's beginning names it.
  void free_device(void* pointer) {
    const Block block =
        remove(pointer, musaErrorInvalidValue, [](const Block& b) { return b.on_device; });
    std::free(block.begin);
  }

  void free_host(void* pointer) {
    const Block block = remove(pointer, musaErrorInvalidValue,
                               [](const Block& b) { return !b.on_device && !b.registered; });
    std::free(block.begin);
  }

  void unregister_host(void* pointer) {
    remove(pointer, musaErrorHostMemoryNotRegistered, [](const Block& b) { return b.registered; });
  }

  std::optional<Block> find(const void* pointer) const {
    std::shared_lock lock(mutex_);
    auto next = blocks_.upper_bound(static_cast<const char*>(pointer));
    if (next == blocks_.begin()) return std::nullopt;
    const Block& block = std::prev(next)->second;
    if (static_cast<const char*>(pointer) >= block.begin + block.bytes) return std::nullopt;
    return block;
  }

  // Changes whenever a block comes or goes.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  size_t used(int device) const {
    std::shared_lock lock(mutex_);
    return used_[device];
  }

 private:
  void insert(const Block& block) {
    blocks_.emplace(block.begin, block);
    version_.fetch_add(1, std::memory_order_release);
  }

  bool overlaps(const char* begin, size_t bytes) const {
    auto next = blocks_.lower_bound(begin);
    if (next != blocks_.end() && next->second.begin < begin + bytes) return true;
    if (next == blocks_.begin()) return false;
    const Block& previous = std::prev(next)->second;
    return previous.begin + previous.bytes > begin;
  }

  template <typename Predicate>
  Block remove(void* pointer, musaError_t error, Predicate is_right_kind) {
    std::unique_lock lock(mutex_);
    auto found = blocks_.find(static_cast<const char*>(pointer));
    require(found != blocks_.end() && is_right_kind(found->second), error);
    const Block block = found->second;
    blocks_.erase(found);
    version_.fetch_add(1, std::memory_order_release);
    if (block.on_device) used_[block.device] -= block.bytes;
    return block;
  }

  mutable std::shared_mutex mutex_;
  std::atomic<uint64_t> version_{1};
  std::map<const char*, Block> blocks_;
  std::vector<size_t> used_ = std::vector<size_t>(static_cast<size_t>(device_count()));
};

}  // namespace

std::optional<Block> find_block(const void* pointer) { return Registry::instance().find(pointer); }

bool device_accessible(const void* pointer, size_t bytes, int device) {
  // The operands of a call tend to lie in one block: the last one found is tried first.
  struct Recent {
    uint64_t version;
    Block block;
  };
  thread_local Recent recent{};
  const uint64_t version = Registry::instance().version();
  if (recent.version != version || !recent.block.holds(pointer, bytes)) {
    const std::optional<Block> found = find_block(pointer);
    if (!found || !found->holds(pointer, bytes)) return false;
    recent = {version, *found};
  }
  const Block& block = recent.block;
  return !block.on_device || block.device == device || peer_enabled(device, block.device);
}

}  // namespace musa::host

using musa::host::api;
using musa::host::current_device;
using musa::host::Registry;
using musa::host::require;
using musa::host::require_device;

musaError_t musaMalloc(void** pointer, size_t bytes) {
  return api([&] {
    require(pointer != nullptr);
    *pointer = nullptr;
    require_device(current_device());
    *pointer = Registry::instance().allocate_device(bytes, current_device());
  });
}

musaError_t musaFree(void* pointer) {
  return api([&] {
    if (pointer == nullptr) return;
    // Memory may not vanish under work that uses it.
    if (auto block = musa::host::find_block(pointer); block && block->on_device) {
      musa::host::synchronize_device(block->device);
    }
    Registry::instance().free_device(pointer);
  });
}

musaError_t musaMallocHost(void** pointer, size_t bytes) {
  return musaHostAlloc(pointer, bytes, musaHostAllocDefault);
}

musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return api([&] {
    require(pointer != nullptr);
    *pointer = nullptr;
    constexpr unsigned kKnown =
        musaHostAllocPortable | musaHostAllocMapped | musaHostAllocWriteCombined;
    require((flags & ~kKnown) == 0);
    require_device(current_device());
    *pointer = Registry::instance().allocate_host(bytes, current_device());
  });
}

musaError_t musaFreeHost(void* pointer) {
  return api([&] {
    if (pointer == nullptr) return;
    for (int device = 0; device < musa::host::device_count(); ++device) {
      musa::host::synchronize_device(device);
    }
    Registry::instance().free_host(pointer);
  });
}

musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return api([&] {
    require(pointer != nullptr && bytes > 0);
    require((flags & ~(musaHostRegisterPortable | musaHostRegisterMapped)) == 0);
    require_device(current_device());
    Registry::instance().register_host(pointer, bytes, current_device());
  });
}

musaError_t musaHostUnregister(void* pointer) {
  return api([&] {
    require(pointer != nullptr);
    Registry::instance().unregister_host(pointer);
  });
}

musaError_t musaHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                     unsigned int flags) {
  return api([&] {
    require(device_pointer != nullptr && flags == 0);
    const auto block = musa::host::find_block(host_pointer);
    require(block && !block->on_device);
    *device_pointer = host_pointer;
  });
}

musaError_t musaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return api([&] {
    require(free_bytes != nullptr && total_bytes != nullptr);
    require_device(current_device());
    *total_bytes = musa::host::device_memory();
    *free_bytes = *total_bytes - Registry::instance().used(current_device());
  });
}

musaError_t musaPointerGetAttributes(musaPointerAttributes* attributes, const void* pointer) {
  return api([&] {
    require(attributes != nullptr && pointer != nullptr);
    *attributes = {musaMemoryTypeUnregistered, musaInvalidDeviceId, nullptr,
                   const_cast<void*>(pointer)};
    const auto block = musa::host::find_block(pointer);
    if (!block) return;
    attributes->type = block->on_device ? musaMemoryTypeDevice : musaMemoryTypeHost;
    attributes->device = block->device;
    attributes->devicePointer = const_cast<void*>(pointer);
    attributes->hostPointer = block->on_device ? nullptr : const_cast<void*>(pointer);
  });
}
