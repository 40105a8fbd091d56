// What every entry point of the runtime does: report a sticky error first, turn failures and
// exceptions into error codes, remember the code for musaGetLastError.
#pragma once

#include <atomic>
#include <new>
#include <utility>

#include "musa_host.h"
#include "musa_runtime_api.h"

namespace musa::host {

// Thrown inside the runtime, caught by api().
struct Failure {
  musaError_t error;
};

inline void require(bool condition, musaError_t error = musaErrorInvalidValue) {
  if (!condition) throw Failure{error};
}

// Hidden: the library's own code reaches them without a detour through the linker's tables.
#define MUSART_LOCAL __attribute__((visibility("hidden")))
// For thread-local variables of every call: at a fixed offset, as threadIdx is, instead of behind a
// call. Not for the whole library: libstdc++'s own would need a place there, too.
#define MUSART_FAST_TLS __attribute__((tls_model("initial-exec")))

// What broke the device for good, or musaSuccess.
MUSART_LOCAL extern std::atomic<musaError_t> sticky_error;

// Set while a thread runs a host function.
MUSART_LOCAL extern constinit thread_local bool in_host_function MUSART_FAST_TLS;

// Why no call may go on: a sticky error, a process forked from one that had used a device, or a
// host function (musaLaunchHostFunc) that calls the runtime. musaSuccess: nothing.
inline musaError_t blocking_error() {
  const musaError_t error = sticky_error.load(std::memory_order_relaxed);
  if (error != musaSuccess) [[unlikely]]
    return error;
  return in_host_function ? musaErrorNotPermitted : musaSuccess;
}

template <typename Body>
musaError_t api(Body&& body) {
  if (const musaError_t error = blocking_error(); error != musaSuccess) return error;
  try {
    body();
    return musaSuccess;
  } catch (const Failure& failure) {
    return set_last_error(failure.error);
  } catch (const std::bad_alloc&) {
    return set_last_error(musaErrorMemoryAllocation);
  }
}

}  // namespace musa::host
