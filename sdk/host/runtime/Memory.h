// The registry of memory the runtime knows: device allocations, pinned and managed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "Fault.h"

namespace musa::host {

enum class Kind : uint8_t {
  DEVICE,
  IMPORTED,    // device memory of another process
  MANAGED,     // for host and kernels alike
  PINNED,      // host memory, allocated here
  REGISTERED,  // host memory that somebody else allocated
};

struct Block {
  char* begin;
  size_t bytes;
  Kind kind;
  int device;          // owner, or the device that was current
  unsigned int flags;  // of musaHostAlloc and musaHostRegister
  void* caller;        // return address of the call that made it

  char* end() const { return begin + bytes; }
  bool on_device() const { return kind == Kind::DEVICE || kind == Kind::IMPORTED; }
  bool on_host() const { return kind == Kind::PINNED || kind == Kind::REGISTERED; }
  bool holds(const void* pointer, size_t count) const {
    const char* p = static_cast<const char*>(pointer);
    return p >= begin && p <= end() && count <= static_cast<size_t>(end() - p);
  }
};

// The block that contains `pointer`, if the runtime knows one.
std::optional<Block> find_block(const void* pointer);

// Whether an address of the range is some device's, allocated or not.
bool touches_device_addresses(const void* pointer, size_t bytes);

// Device memory (256-byte aligned, null for no bytes) and its end. Fails with
// musaErrorMemoryAllocation, musaErrorInvalidValue.
void* allocate_device(size_t bytes, int device, void* caller);
void free_device(void* pointer);
size_t used_memory(int device);

// Memory of the host that the runtime hands out (PINNED, MANAGED; the latter counts as the
// device's), or that somebody else allocated (REGISTERED). Errors: musaErrorMemoryAllocation; for
// what is not such memory musaErrorInvalidValue, musaErrorHostMemoryAlreadyRegistered and
// ...NotRegistered.
void* allocate_host(size_t bytes, Kind kind, int device, unsigned int flags, void* caller);
void free_host(void* pointer);
void register_host(const Block& block);
void unregister_host(void* pointer);

// Device memory of another process, mapped at block.begin, becomes known and unknown.
void add_imported(const Block& block);
Block remove_imported(void* pointer);

// Where a device block lies in its device's file.
struct FilePlace {
  int file;
  size_t offset;
};
FilePlace file_place(const Block& block);

// The block's IPC handles are void from now on.
void forget_export(void* pointer);

// With debug_memory: complains of every block of the device whose end was written past and leaves
// a sticky error. `work` is who may have done it (null: unknown).
void check_red_zones(int device, const char* work);

// For the fault handler, which must not wait: false where the registry is busy.
struct FaultPlace {
  bool known;  // `block` holds the address or ends shortly before it
  Block block;
  bool freed;          // ... and is no more
  bool device_memory;  // the address lies in some device's range
  Trace trace;         // who allocated the block, where that is recorded
};
bool describe_fault(const void* pointer, FaultPlace* place);

}  // namespace musa::host
