// Faults of kernels that the processor notices: wild pointers, shared memory out of range.
#pragma once

namespace musa::host {

// Gives the calling thread a stack for signal handlers, and the process its handlers, once.
void watch_this_thread();

}  // namespace musa::host
