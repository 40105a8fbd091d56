// Error state: per thread for the calls that failed, per process for what a kernel broke.
#include <pthread.h>

#include <atomic>
#include <mutex>

#include "Api.h"
#include "Stream.h"

namespace musa::host {
namespace {

constinit thread_local musaError_t last_error = musaSuccess;

}  // namespace

std::atomic<musaError_t> sticky_error{musaSuccess};
constinit thread_local bool in_host_function MUSART_FAST_TLS = false;

void forbid_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { set_sticky_error(musaErrorInitializationError); });
  });
}

void set_sticky_error(musaError_t error) {
  musaError_t none = musaSuccess;
  sticky_error.compare_exchange_strong(none, error);  // the first one stays
}

musaError_t set_last_error(musaError_t error) {
  if (error != musaSuccess) last_error = error;
  return error;
}

}  // namespace musa::host

musaError_t musaGetLastError() {
  const musaError_t error = musaPeekAtLastError();
  musa::host::last_error = musaSuccess;
  return error;
}

musaError_t musaPeekAtLastError() {
  const musaError_t sticky = musa::host::sticky_error.load(std::memory_order_relaxed);
  return sticky != musaSuccess ? sticky : musa::host::last_error;
}

#define MUSA_ERRORS(X)                                                                             \
  X(musaSuccess, "no error")                                                                       \
  X(musaErrorInvalidValue, "invalid argument")                                                     \
  X(musaErrorMemoryAllocation, "out of memory")                                                    \
  X(musaErrorInitializationError, "initialization error")                                          \
  X(musaErrorInvalidConfiguration, "invalid configuration argument")                               \
  X(musaErrorInvalidDevicePointer, "invalid device pointer")                                       \
  X(musaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                          \
  X(musaErrorInsufficientDriver, "MUSA driver version is insufficient for MUSA runtime version")   \
  X(musaErrorInvalidDeviceFunction, "invalid device function")                                     \
  X(musaErrorNoDevice, "no MUSA-capable device is detected")                                       \
  X(musaErrorInvalidDevice, "invalid device ordinal")                                              \
  X(musaErrorDeviceUninitialized, "invalid device context")                                        \
  X(musaErrorMapBufferObjectFailed, "mapping of buffer object failed")                             \
  X(musaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")      \
  X(musaErrorInvalidResourceHandle, "invalid resource handle")                                     \
  X(musaErrorIllegalState, "the operation cannot be performed in the present state")               \
  X(musaErrorNotReady, "device not ready")                                                         \
  X(musaErrorIllegalAddress, "an illegal memory access was encountered")                           \
  X(musaErrorLaunchOutOfResources, "too many resources requested for launch")                      \
  X(musaErrorLaunchTimeout, "the launch timed out and was terminated")                             \
  X(musaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                           \
  X(musaErrorPeerAccessNotEnabled, "peer access has not been enabled")                             \
  X(musaErrorAssert, "device-side assert triggered")                                               \
  X(musaErrorHostMemoryAlreadyRegistered,                                                          \
    "part or all of the requested memory range is already mapped")                                 \
  X(musaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
  X(musaErrorLaunchFailure, "unspecified launch failure")                                          \
  X(musaErrorNotPermitted, "operation not permitted")                                              \
  X(musaErrorNotSupported, "operation not supported")                                              \
  X(musaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")         \
  X(musaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")  \
  X(musaErrorStreamCaptureMerge, "operation would result in a merge of separate captures")         \
  X(musaErrorStreamCaptureUnmatched, "capture was not ended in the stream in which it began")      \
  X(musaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                          \
  X(musaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")    \
  X(musaErrorStreamCaptureImplicit,                                                                \
    "operation would make the legacy stream depend on a capturing blocking stream")                \
  X(musaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture")      \
  X(musaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture elsewhere")    \
  X(musaErrorUnknown, "unknown error")

const char* musaGetErrorName(musaError_t error) {
  switch (error) {
#define X(code, text) \
  case code:          \
    return #code;
    MUSA_ERRORS(X)
#undef X
  }
  return "unrecognized error code";
}

const char* musaGetErrorString(musaError_t error) {
  switch (error) {
#define X(code, text) \
  case code:          \
    return text;
    MUSA_ERRORS(X)
#undef X
  }
  return "unrecognized error code";
}
