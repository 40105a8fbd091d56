// MUSA_VISIBLE_DEVICES: which of the machine's devices a process sees, and in which order.
#pragma once

#include <vector>

namespace musa {

// Numbers among `present` devices, in the process' order: all of them where the variable is not
// set. As CUDA_VISIBLE_DEVICES: the first entry that names no device ends the list, a device named
// twice leaves none.
__attribute__((visibility("hidden"))) std::vector<int> visible_devices(int present);

}  // namespace musa
