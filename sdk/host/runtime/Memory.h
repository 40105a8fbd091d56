// The registry of memory the runtime knows: device allocations and pinned host ranges.
#pragma once

#include <cstddef>
#include <optional>

namespace musa::host {

struct Block {
  char* begin;
  size_t bytes;
  bool on_device;
  bool registered;  // host memory that somebody else allocated
  int device;       // owner, or the device that was current

  bool holds(const void* pointer, size_t count) const {
    const char* p = static_cast<const char*>(pointer);
    return p >= begin && p <= begin + bytes && count <= static_cast<size_t>(begin + bytes - p);
  }
};

// The block that contains `pointer`, if the runtime knows one.
std::optional<Block> find_block(const void* pointer);

}  // namespace musa::host
