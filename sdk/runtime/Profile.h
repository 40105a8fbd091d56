// The chip that a stand-in behaves like: MUSA_ARCH.
#pragma once

namespace musa {

// Compute capability and warp size by architecture: sglang PR 10023 and the torch_musa manual.
struct Profile {
  const char* name;
  int major;
  int minor;
  int warp_size;
};

// The process'; a name that is no chip is reported on stderr once, and mp_31 taken.
__attribute__((visibility("hidden"))) const Profile& profile();

}  // namespace musa
