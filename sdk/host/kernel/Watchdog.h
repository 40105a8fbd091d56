// Ends kernels that would run for ever: a thread spins on what another thread of its block is to
// write, and that one never gets its turn.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace musa::host {

// What the watchdog sees of a thread of the operating system that runs blocks.
struct Pulse {
  std::atomic<bool> running{false};
  std::atomic<uint64_t> blocks{0};       // begun so far
  std::atomic<uint64_t> overdue{~0ull};  // the block whose time is up, by that number
  pthread_t thread = pthread_self();
};

// From watch to unwatch, a block that takes longer than TORCH_MUSA_HOST_KERNEL_SECONDS (120; 0: no
// limit; none under a debugger) is marked overdue, and its thread gets a signal, whose handler
// ends the block wherever it is.
void watch(Pulse& pulse);
void unwatch(Pulse& pulse);

// What the report says of such a block.
const char* overdue_text();

// The signal, for the handler's installation.
int overdue_signal();

}  // namespace musa::host
