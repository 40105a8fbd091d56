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

// Installs the handler that names the allocation when a fault hits device memory. Others' handlers
// are called after it.
void install_fault_handler();

// Says that a queue's work has thrown; nobody else could.
void print_failed_work(const char* work, const char* reason);

// Says that somebody wrote `offset` bytes behind the block's end.
void report_overrun(const Block& block, size_t offset, const char* work, const Trace& trace);

}  // namespace musa::host
