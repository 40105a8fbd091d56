// What every entry point of the runtime does: call CUDA's of the same name and translate its error.
// Most codes are CUDA's own numbers.
#pragma once

#include <cuda_runtime_api.h>

#include "musa_runtime_api.h"

namespace musa::cuda {

// Hidden: the library's own code reaches them without a detour through the linker's tables.
#define MUSART_LOCAL __attribute__((visibility("hidden")))

// The code as MUSA's runtime spells it; musaErrorUnknown for one that it does not have.
MUSART_LOCAL musaError_t error_of(cudaError_t error);

// The error of a call that CUDA has refused, which keeps it as the thread's last one.
MUSART_LOCAL musaError_t translated(cudaError_t error);

// An error that CUDA knows nothing of (a device that MUSA_VISIBLE_DEVICES hides, say): kept as the
// thread's last one.
MUSART_LOCAL musaError_t refuse(musaError_t error);

inline musaError_t done(cudaError_t error) {
  return error == cudaSuccess ? musaSuccess : translated(error);
}

// A thread begins on CUDA's device 0. Where this process does not see that one, its first call
// puts the thread on the first that it sees.
MUSART_LOCAL void settle_thread();

}  // namespace musa::cuda
