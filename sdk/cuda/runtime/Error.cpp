// Error codes: CUDA's numbers, a last error per thread, and the errors that stick.
#include "Api.h"

#include <atomic>

namespace musa::cuda {
namespace {

// Refusals of our own; what CUDA refuses it remembers itself.
constinit thread_local musaError_t last_refusal = musaSuccess;

// What broke the context for good. CUDA returns such an error from every later call but forgets it
// as last error once it was taken.
std::atomic<musaError_t> sticky{musaSuccess};

bool sticks(musaError_t error) {
  switch (error) {
    case musaErrorIllegalAddress:
    case musaErrorLaunchTimeout:
    case musaErrorAssert:
    case musaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

}  // namespace

musaError_t error_of(cudaError_t error) {
  switch (error) {
    // What a kernel did that MUSA's runtime has no code of its own for.
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
      return musaErrorLaunchFailure;
    case cudaErrorStubLibrary:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorSystemDriverMismatch:
      return musaErrorInsufficientDriver;
    case cudaErrorDevicesUnavailable:
      return musaErrorNoDevice;
    case cudaErrorAlreadyMapped:
      return musaErrorMapBufferObjectFailed;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return musaErrorInvalidDeviceFunction;
    default:
      break;
  }
  // The others have CUDA's numbers, and a name where MUSA has them.
  const auto same = static_cast<musaError_t>(error);
  return musaGetErrorName(same)[0] == 'm' ? same : musaErrorUnknown;
}

musaError_t translated(cudaError_t error) {
  const musaError_t own = error_of(error);
  if (sticks(own)) {
    musaError_t none = musaSuccess;
    sticky.compare_exchange_strong(none, own);
  }
  return own;
}

musaError_t refuse(musaError_t error) { return last_refusal = error; }

}  // namespace musa::cuda

using musa::cuda::last_refusal;
using musa::cuda::translated;

musaError_t musaPeekAtLastError() {
  const musaError_t broken = musa::cuda::sticky.load(std::memory_order_relaxed);
  if (broken != musaSuccess) return broken;
  return last_refusal != musaSuccess ? last_refusal : translated(cudaPeekAtLastError());
}

musaError_t musaGetLastError() {
  const musaError_t error = musaPeekAtLastError();
  last_refusal = musaSuccess;
  (void)cudaGetLastError();
  return error;
}
