// Where a ported source looks for ATen/cuda/CUDAContextLight.h: devices, without the libraries'
// handles.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAFunctions.h>

#include "torch_musa/csrc/aten/musa/MUSAContext.h"

namespace at::musa {

using c10::musa::current_device;
using c10::musa::device_count;
using c10::musa::device_synchronize;
using c10::musa::set_device;

inline int64_t getNumGPUs() { return c10::musa::device_count(); }
inline bool is_available() { return c10::musa::device_count() > 0; }

inline bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer) {
  return c10::musa::can_access_peer(device, peer);
}

inline c10::Allocator* getMUSADeviceAllocator() { return c10::musa::MUSACachingAllocator::get(); }

}  // namespace at::musa
