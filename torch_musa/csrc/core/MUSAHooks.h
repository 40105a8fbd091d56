#pragma once

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace at::musa {

/// What generic PyTorch code asks of the accelerator beside the device guard: generators, pinned
/// memory, storages.
struct MUSAHooks final : public PrivateUse1HooksInterface {
  void init() const override;
  bool isBuilt() const override { return true; }
  bool isAvailable() const override;
  bool hasPrimaryContext(DeviceIndex device_index) const override;

  DeviceIndex deviceCount() const override;
  DeviceIndex getCurrentDevice() const override;
  void setCurrentDevice(DeviceIndex device) const override;
  DeviceIndex exchangeDevice(DeviceIndex device) const override;
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override;

  const Generator& getDefaultGenerator(DeviceIndex device_index) const override;
  Generator getNewGenerator(DeviceIndex device_index = -1) const override;

  Device getDeviceFromPtr(void* data) const override;
  bool isPinnedPtr(const void* data) const override;
  Allocator* getPinnedMemoryAllocator() const override;
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t new_bytes) const override;
};

}  // namespace at::musa
