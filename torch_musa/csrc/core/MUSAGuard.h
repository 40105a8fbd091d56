#pragma once

#include <c10/core/impl/InlineDeviceGuard.h>
#include <c10/core/impl/InlineStreamGuard.h>

#include <optional>

#include "torch_musa/csrc/core/impl/MUSAGuardImpl.h"

namespace c10::musa {

/// Makes a device current for the life of the object. Refuses devices of another type.
struct MUSAGuard {
  explicit MUSAGuard() = delete;
  explicit MUSAGuard(DeviceIndex index) : guard_(index) {}
  explicit MUSAGuard(Device device) : guard_(device) {}
  MUSAGuard(const MUSAGuard&) = delete;
  MUSAGuard& operator=(const MUSAGuard&) = delete;

  void set_device(Device device) { guard_.set_device(device); }
  void reset_device(Device device) { guard_.reset_device(device); }
  void set_index(DeviceIndex index) { guard_.set_index(index); }
  Device original_device() const { return guard_.original_device(); }
  Device current_device() const { return guard_.current_device(); }

 private:
  c10::impl::InlineDeviceGuard<impl::MUSAGuardImpl> guard_;
};

/// MUSAGuard that may hold nothing.
struct OptionalMUSAGuard {
  OptionalMUSAGuard() = default;
  explicit OptionalMUSAGuard(std::optional<Device> device) : guard_(device) {}
  explicit OptionalMUSAGuard(std::optional<DeviceIndex> index) : guard_(index) {}
  OptionalMUSAGuard(const OptionalMUSAGuard&) = delete;
  OptionalMUSAGuard& operator=(const OptionalMUSAGuard&) = delete;

  void set_device(Device device) { guard_.set_device(device); }
  void reset_device(Device device) { guard_.reset_device(device); }
  void set_index(DeviceIndex index) { guard_.set_index(index); }
  std::optional<Device> original_device() const { return guard_.original_device(); }
  std::optional<Device> current_device() const { return guard_.current_device(); }
  void reset() { guard_.reset(); }

 private:
  c10::impl::InlineOptionalDeviceGuard<impl::MUSAGuardImpl> guard_;
};

/// Makes a stream, and the device it belongs to, current for the life of the object.
struct MUSAStreamGuard {
  explicit MUSAStreamGuard() = delete;
  explicit MUSAStreamGuard(Stream stream) : guard_(stream) {}
  MUSAStreamGuard(const MUSAStreamGuard&) = delete;
  MUSAStreamGuard& operator=(const MUSAStreamGuard&) = delete;

  void reset_stream(Stream stream) { guard_.reset_stream(stream); }
  MUSAStream original_stream() const {
    return MUSAStream(MUSAStream::UNCHECKED, guard_.original_stream());
  }
  MUSAStream current_stream() const {
    return MUSAStream(MUSAStream::UNCHECKED, guard_.current_stream());
  }
  Device original_device() const { return guard_.original_device(); }
  Device current_device() const { return guard_.current_device(); }

 private:
  c10::impl::InlineStreamGuard<impl::MUSAGuardImpl> guard_;
};

}  // namespace c10::musa

// Sources written for CUDA say at::cuda::CUDAGuard as often as c10::cuda::CUDAGuard.
namespace at::musa {
using c10::musa::MUSAGuard;
using c10::musa::MUSAStreamGuard;
using c10::musa::OptionalMUSAGuard;
}  // namespace at::musa
