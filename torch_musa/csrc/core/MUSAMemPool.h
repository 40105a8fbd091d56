#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace c10::musa {

/// A private pool that a user holds: what torch.musa.use_mem_pool allocates in. When it goes, what
/// is free of it goes back to the driver; blocks in use stay valid until they are freed.
class MemPool {
 public:
  /// On the current device. `use_on_oom`: serves others where the device is full. `no_split`: a
  /// segment goes as a whole to one allocation.
  explicit MemPool(bool use_on_oom = false, bool no_split = false);
  ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;

  MempoolId_t id() const { return id_; }
  DeviceIndex device() const { return device_; }
  /// 1, and one more for each graph and use_mem_pool that uses it now.
  int use_count() const;

 private:
  MempoolId_t id_;
  DeviceIndex device_;
};

}  // namespace c10::musa
