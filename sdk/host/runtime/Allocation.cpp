// The API's calls about memory: device, managed and page-locked, and what is known of a pointer.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "Capture.h"
#include "Device.h"
#include "Memory.h"
#include "Pool.h"
#include "Stream.h"

using musa::host::allocate_host;
using musa::host::api;
using musa::host::current_device;
using musa::host::Kind;
using musa::host::require;
using musa::host::require_device;
using musa::host::require_no_unsafe_capture;

namespace {

// Asks for nothing to be written back; what is asked is whether there is anything.
bool is_mapped(void* pointer, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(pointer);
  const uintptr_t begin = from / page * page;
  return msync(reinterpret_cast<void*>(begin), from - begin + bytes, MS_ASYNC) == 0;
}

}  // namespace

musaError_t musaMalloc(void** pointer, size_t bytes) {
  void* caller = __builtin_return_address(0);
  return api([&] {
    require(pointer != nullptr);
    *pointer = nullptr;
    require_device(current_device());
    require_no_unsafe_capture();
    // What the device's memory pools hold unused is memory, too.
    *pointer = musa::host::with_pool_memory(current_device(), [&] {
      return musa::host::allocate_device(bytes, current_device(), caller);
    });
  });
}

musaError_t musaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  void* caller = __builtin_return_address(0);
  return api([&] {
    require(pointer != nullptr);
    *pointer = nullptr;
    require(bytes > 0 && (flags == musaMemAttachGlobal || flags == musaMemAttachHost));
    require_device(current_device());
    require_no_unsafe_capture();
    *pointer = allocate_host(bytes, Kind::MANAGED, current_device(), flags, caller);
  });
}

musaError_t musaFree(void* pointer) {
  return api([&] {
    if (pointer == nullptr) return;
    require_no_unsafe_capture();
    const auto block = musa::host::find_block(pointer);
    require(block && block->begin == pointer);
    // Memory may not vanish under work that uses it.
    musa::host::synchronize_device(block->device);
    if (musa::host::free_pool_block(pointer)) return;
    musa::host::free_device(pointer);
  });
}

musaError_t musaMallocHost(void** pointer, size_t bytes) {
  return musaHostAlloc(pointer, bytes, musaHostAllocDefault);
}

musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  void* caller = __builtin_return_address(0);
  return api([&] {
    require(pointer != nullptr);
    *pointer = nullptr;
    constexpr unsigned kKnown =
        musaHostAllocPortable | musaHostAllocMapped | musaHostAllocWriteCombined;
    require((flags & ~kKnown) == 0);
    require_device(current_device());
    require_no_unsafe_capture();
    *pointer = allocate_host(bytes, Kind::PINNED, current_device(), flags, caller);
  });
}

musaError_t musaFreeHost(void* pointer) {
  return api([&] {
    if (pointer == nullptr) return;
    require_no_unsafe_capture();
    for (int device = 0; device < musa::host::device_count(); ++device) {
      musa::host::synchronize_device(device);
    }
    musa::host::free_host(pointer);
  });
}

musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  void* caller = __builtin_return_address(0);
  return api([&] {
    require(pointer != nullptr && bytes > 0);
    require((flags & ~(musaHostRegisterPortable | musaHostRegisterMapped)) == 0);
    require(reinterpret_cast<uintptr_t>(pointer) + bytes > reinterpret_cast<uintptr_t>(pointer));
    require_device(current_device());
    require(musa::host::find_block(pointer) ||
            (!musa::host::touches_device_addresses(pointer, bytes) && is_mapped(pointer, bytes)));
    musa::host::register_host(
        {static_cast<char*>(pointer), bytes, Kind::REGISTERED, current_device(), flags, caller});
  });
}

musaError_t musaHostUnregister(void* pointer) {
  return api([&] {
    require(pointer != nullptr);
    for (int device = 0; device < musa::host::device_count(); ++device) {
      musa::host::synchronize_device(device);
    }
    musa::host::unregister_host(pointer);
  });
}

musaError_t musaHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                     unsigned int flags) {
  return api([&] {
    require(device_pointer != nullptr && flags == 0);
    const auto block = musa::host::find_block(host_pointer);
    require(block && block->on_host());
    *device_pointer = host_pointer;
  });
}

musaError_t musaHostGetFlags(unsigned int* flags, void* host_pointer) {
  return api([&] {
    require(flags != nullptr);
    const auto block = musa::host::find_block(host_pointer);
    require(block && block->kind == Kind::PINNED);
    *flags = block->flags | musaHostAllocMapped;  // unified addressing: all of it is mapped
  });
}

musaError_t musaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return api([&] {
    require(free_bytes != nullptr && total_bytes != nullptr);
    require_device(current_device());
    *total_bytes = musa::host::device_memory(current_device());
    *free_bytes = *total_bytes - musa::host::used_memory(current_device());
  });
}

musaError_t musaPointerGetAttributes(musaPointerAttributes* attributes, const void* pointer) {
  return api([&] {
    require(attributes != nullptr && pointer != nullptr);
    void* plain = const_cast<void*>(pointer);
    *attributes = {musaMemoryTypeUnregistered, musaInvalidDeviceId, nullptr, plain};
    const auto block = musa::host::find_block(pointer);
    if (!block) return;
    attributes->type = block->on_device()             ? musaMemoryTypeDevice
                       : block->kind == Kind::MANAGED ? musaMemoryTypeManaged
                                                      : musaMemoryTypeHost;
    attributes->device = block->device;
    attributes->devicePointer = plain;
    attributes->hostPointer = block->on_device() ? nullptr : plain;
  });
}
