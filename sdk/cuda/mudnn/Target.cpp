#include "Target.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace musa::dnn::internal::target {
namespace {

// Once per process. ATen initializes CUDA where it allocates; here memory comes from elsewhere.
void initialize() {
  static const bool done = [] {
    at::globalContext().lazyInitDevice(at::kCUDA);
    // ATen keeps the memory of its temporaries: a full device gets it back.
    cuda::on_out_of_memory([] { c10::cuda::CUDACachingAllocator::emptyCache(); });
    return true;
  }();
  (void)done;
}

// ATen counts streams by a number whose last bit says that the stream is its own, so the legacy
// default stream goes by its other name.
c10::cuda::CUDAStream stream_of(int device, musaStream_t stream) {
  initialize();
  const musaStream_t handle = stream == musaStreamLegacy ? nullptr : stream;
  return c10::cuda::getStreamFromExternal(handle, target::device(device).index());
}

}  // namespace

OnStream::OnStream(int device, musaStream_t stream) {
  const c10::cuda::CUDAStream wanted = stream_of(device, stream);
  if (c10::cuda::current_device() != wanted.device_index() ||
      c10::cuda::getCurrentCUDAStream(wanted.device_index()) != wanted) {
    guard_.emplace(wanted);
  }
  if (cuda::captures_under_way.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    memory_.emplace(wanted);
  }
}

void synchronize(int device, musaStream_t stream) {
  const c10::cuda::CUDAGuard guard(target::device(device).index());
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::runtime_error(std::string("the stream failed: ") + cudaGetErrorString(error));
  }
}

}  // namespace musa::dnn::internal::target
