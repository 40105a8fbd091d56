// Names and texts of the error codes, which every target shares.
#include "musa_runtime_api.h"

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
