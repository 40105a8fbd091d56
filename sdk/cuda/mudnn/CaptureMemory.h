// Temporaries of calls that a graph records. The graph writes to them at every launch, so they come
// from memory of their own, which lives as long as the graph does.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDAStream.h>

namespace musa::dnn::internal {

// For one call, while any stream of the process is being captured. On a stream that is, ATen takes
// memory from the capture's pool; on another one as always, but asks CUDA nothing that a capture
// forbids.
class CaptureMemory {
 public:
  explicit CaptureMemory(c10::cuda::CUDAStream stream);
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

 private:
  c10::DeviceIndex device_;
  c10::MempoolId_t pool_;
  bool keep_ = false;  // the pool's first use
};

}  // namespace musa::dnn::internal
