#include "torch_musa/csrc/aten/musa/MUSAContext.h"

#include <c10/macros/Macros.h>

#include <memory>
#include <mutex>
#include <vector>

#include "torch_musa/csrc/core/MUSAException.h"

namespace at::musa {

musaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  struct Entry {
    std::once_flag read;
    musaDeviceProp properties{};
  };
  static auto* entries = new std::vector<Entry>(c10::musa::device_count());
  device = c10::musa::resolve_device_index(device);
  Entry& entry = (*entries)[device];
  std::call_once(entry.read,
                 [&] { C10_MUSA_CHECK(musaGetDeviceProperties(&entry.properties, device)); });
  return &entry.properties;
}

musaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(-1); }

int getMUSAArch() {
  const musaDeviceProp* properties = getCurrentDeviceProperties();
  return 10 * properties->major + properties->minor;
}

// PyTorch's kernels are compiled for so many lanes (a sum over shared memory from there on),
// whatever the chip's warps have: were it the chip's 128, Reduce.cuh would give them no shared
// memory.
int warp_size() { return C10_WARP_SIZE; }

}  // namespace at::musa
