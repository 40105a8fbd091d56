#include "torch_musa/csrc/core/MUSACachingAllocator.h"

#include <musa_runtime.h>

#include <atomic>
#include <memory>
#include <vector>

#include "torch_musa/csrc/core/FastThreadLocal.h"
#include "torch_musa/csrc/core/MUSADeviceAllocator.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"

namespace c10::musa::MUSACachingAllocator {
namespace {

// Where this thread freed memory last: most likely where it will the next time.
constinit thread_local DeviceIndex freed_on MUSA_FAST_TLS = 0;

void delete_data(void* ptr);

class Allocator final : public c10::DeviceAllocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    const DeviceIndex index = current_device();
    void* ptr = nbytes == 0 ? nullptr : allocate_on(index, nbytes, getCurrentMUSAStream(index));
    return {ptr, ptr, &delete_data, Device(DeviceType::PrivateUse1, index)};
  }

  DeleterFnPtr raw_deleter() const override { return &delete_data; }

  void copy_data(void* dest, const void* src, std::size_t count) const override {
    C10_MUSA_CHECK(musaMemcpyAsync(dest, src, count, musaMemcpyDeviceToDevice,
                                   getCurrentMUSAStream().stream()));
  }

  bool initialized() override { return is_initialized(); }

  void emptyCache(MempoolId_t pool) override {
    if (is_initialized()) {
      for (const auto& device : devices()) {
        device->empty_cache(pool);
      }
    }
  }

  void recordStream(const DataPtr& data_ptr, Stream stream) override {
    // Memory from elsewhere (from_blob, another process) is not this allocator's to keep.
    if (data_ptr.get() == nullptr || data_ptr.get_deleter() != &delete_data) {
      return;
    }
    const bool known =
        at(data_ptr.device().index()).record_stream(data_ptr.get_context(), MUSAStream(stream));
    TORCH_CHECK(known, "record_stream: no allocation at ", data_ptr.get());
  }

  CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override {
    return at(device).stats();
  }
  void resetAccumulatedStats(DeviceIndex device) override { at(device).reset_accumulated_stats(); }
  void resetPeakStats(DeviceIndex device) override { at(device).reset_peak_stats(); }
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) { return at(device).memory_info(); }

  void* allocate_on(DeviceIndex device, size_t nbytes, MUSAStream stream,
                    bool outside_pools = false) {
    return at(device).malloc(nbytes, stream, outside_pools);
  }

  MUSADeviceAllocator& at(DeviceIndex device) {
    check_device_index(device);
    return *devices()[device];
  }

  void release(void* ptr) {
    // No address is two devices', and a deleter is told nothing else.
    if (freed_on < devices().size() && devices()[freed_on]->free(ptr)) {
      return;
    }
    for (size_t device = 0; device < devices().size(); ++device) {
      if (devices()[device]->free(ptr)) {
        freed_on = static_cast<DeviceIndex>(device);
        return;
      }
    }
    TORCH_CHECK(false, "Not an address that the musa allocator handed out: ", ptr);
  }

 private:
  using Devices = std::vector<std::unique_ptr<MUSADeviceAllocator>>;

  // Made on first use, not when the library is loaded: counting devices starts the driver, which
  // does not survive a fork, and a process that only imports torch should stay free to fork.
  Devices& devices() {
    static Devices* all = [] {
      auto* made = new Devices();
      for (DeviceIndex device = 0; device < device_count(); ++device) {
        made->push_back(std::make_unique<MUSADeviceAllocator>(device));
      }
      return made;
    }();
    return *all;
  }
};

Allocator& instance() {
  static auto* allocator =
      new Allocator();  // tensors in static variables outlive every destructor order
  return *allocator;
}

void delete_data(void* ptr) {
  if (ptr != nullptr) {
    instance().release(ptr);
  }
}

REGISTER_ALLOCATOR(DeviceType::PrivateUse1, &instance())

}  // namespace

c10::DeviceAllocator* get() { return &instance(); }

void* raw_alloc(size_t nbytes) {
  const DeviceIndex device = current_device();
  return nbytes == 0 ? nullptr
                     : instance().allocate_on(device, nbytes, getCurrentMUSAStream(device));
}

void raw_delete(void* ptr) { delete_data(ptr); }

void recordStream(const DataPtr& data_ptr, MUSAStream stream) {
  instance().recordStream(data_ptr, stream.unwrap());
}

void emptyCache() { instance().emptyCache({0, 0}); }

MempoolId_t new_graph_pool_id() {
  static std::atomic<CaptureId_t> last{0};
  return {++last, 0};
}

MempoolId_t new_user_pool_id() {
  static std::atomic<CaptureId_t> last{0};
  return {0, ++last};
}

void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, bool use_on_oom, bool no_split) {
  instance().at(device).retain_pool(pool, use_on_oom, no_split);
}

void releasePool(DeviceIndex device, MempoolId_t pool) { instance().at(device).release_pool(pool); }

int getPoolUseCount(DeviceIndex device, MempoolId_t pool) {
  return instance().at(device).pool_uses(pool);
}

void beginAllocateToPool(DeviceIndex device, MempoolId_t pool,
                         std::function<bool(const MUSAStream&)> serves, bool captures) {
  instance().at(device).open_route({pool, std::move(serves), captures});
}

void endAllocateToPool(DeviceIndex device, MempoolId_t pool) {
  instance().at(device).close_route(pool);
}

DataPtr allocate_outside_pools(DeviceIndex device, size_t nbytes) {
  void* ptr = instance().allocate_on(device, nbytes, getDefaultMUSAStream(device),
                                     /*outside_pools=*/true);
  return {ptr, ptr, &delete_data, Device(DeviceType::PrivateUse1, device)};
}

CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) {
  return instance().getDeviceStats(device);
}

void resetPeakStats(DeviceIndex device) { instance().resetPeakStats(device); }

void resetAccumulatedStats(DeviceIndex device) { instance().resetAccumulatedStats(device); }

std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) {
  return instance().getMemoryInfo(device);
}

}  // namespace c10::musa::MUSACachingAllocator
