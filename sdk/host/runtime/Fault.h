// Messages for those who touch device memory where they may not.
#pragma once

#include <cstddef>

namespace musa::host {

struct Block;

// Return addresses of an allocation's callers, innermost first; null-terminated unless full.
struct Trace {
  static constexpr int kDepth = 24;
  void* frames[kDepth];

  static Trace here();
};

// Installs the handlers that name the allocation when a fault hits device memory, and that let work
// divide by zero. Others' handlers are called after them.
void install_fault_handler();

// Says that a queue's work has thrown; nobody else could.
void print_failed_work(const char* work, const char* reason);

// Says that work, named by a label or its C++ type, divided by zero.
void print_division_by_zero(const char* work);

// Says that somebody wrote `offset` bytes behind the block's end.
void report_overrun(const Block& block, size_t offset, const char* work, const Trace& trace);

}  // namespace musa::host
