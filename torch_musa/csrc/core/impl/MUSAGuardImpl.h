#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "torch_musa/csrc/core/MUSAStream.h"
#include "torch_musa/csrc/core/TorchCompat.h"

namespace c10::musa::impl {

/// What generic PyTorch code (c10::DeviceGuard, torch.Stream, torch.Event, autograd's engine) uses
/// to steer a device.
///
/// Members of newer PyTorch versions carry no `override`: the same declaration then also compiles
/// where the interface lacks them.
struct MUSAGuardImpl final : public c10::impl::DeviceGuardImplInterface {
  static constexpr DeviceType static_type = DeviceType::PrivateUse1;

  MUSAGuardImpl() = default;
  explicit MUSAGuardImpl(DeviceType type);

  DeviceType type() const override { return DeviceType::PrivateUse1; }

  Device exchangeDevice(Device device) const override;
  Device getDevice() const override;
  void setDevice(Device device) const override;
  void uncheckedSetDevice(Device device) const noexcept override;
  DeviceIndex deviceCount() const noexcept override;
#if MUSA_HAS_DEVICE_CAPABILITY
  DeviceCapability getDeviceCapability(Device device) const;
#endif

  Stream getStream(Device device) const override;
  Stream getDefaultStream(Device device) const override;
  Stream getStreamFromGlobalPool(Device device, bool is_high_priority = false) const override;
  Stream getNewStream(Device device, int priority = 0) const override;
  Stream exchangeStream(Stream stream) const override;
  bool queryStream(const Stream& stream) const override;
  void synchronizeStream(const Stream& stream) const override;
  void* getStreamNativeHandle(const Stream stream) const;
  bool isStreamCapturing(const Stream& stream) const;

  void record(void** event, const Stream& stream, const DeviceIndex device_index,
              const EventFlag flag) const override;
  void block(void* event, const Stream& stream) const override;
  bool queryEvent(void* event) const override;
  void synchronizeEvent(void* event) const override;
  double elapsedTime(void* start, void* end, const DeviceIndex device_index) const override;
  void destroyEvent(void* event, const DeviceIndex device_index) const noexcept override;

  void synchronizeDevice(const DeviceIndex device_index) const override;
  void recordDataPtrOnStream(const DataPtr& data_ptr, const Stream& stream) const override;
};

}  // namespace c10::musa::impl
