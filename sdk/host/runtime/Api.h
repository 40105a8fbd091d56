// What every entry point of the runtime does: report a sticky error first, turn failures and
// exceptions into error codes, remember the code for musaGetLastError.
#pragma once

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

// Why no call may go on: a sticky error, a process forked from one that had used a device, or a
// host function (musaLaunchHostFunc) that calls the runtime. musaSuccess: nothing.
musaError_t blocking_error();

// Set while a thread runs a host function.
extern constinit thread_local bool in_host_function;

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
