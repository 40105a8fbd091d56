// The shared memory of the block that a thread of the pool is running.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "musa_kernel/engine.h"

namespace musa::host {

// Static variables grow from the start, each with a strip behind it whose bytes are checked;
// dynamic memory lies at the end, where an inaccessible page follows.
class SharedMemory {
 public:
  SharedMemory();  // throws std::bad_alloc
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // A new block with that much dynamic memory.
  void reset(size_t dynamic_bytes);

  // The variable's place in this block; null where it does not fit the device's limit.
  void* variable(const SharedVariable& variable);
  void* dynamic() const { return dynamic_; }
  size_t static_bytes() const { return static_bytes_; }

  bool has_strips() const { return !variables_.empty() || dynamic_bytes_ != 0; }
  // Empty, or what was written over: "beyond the end of shared variable 'tile'".
  std::string damage() const;
  // Whether the address lies in an inaccessible page beside the memory.
  bool guards(const void* address) const;

 private:
  struct Placed {
    const SharedVariable* variable;
    char* at;
    char* strip;
  };

  void paint(char* strip);

  char* mapping_;
  char* begin_;
  char* end_;
  char* top_;  // of the static variables
  char* dynamic_;
  size_t dynamic_bytes_ = 0;
  size_t static_bytes_ = 0;
  std::vector<Placed> variables_;
};

// Bytes of shared memory that a block may have on this device.
size_t shared_limit();

}  // namespace musa::host
