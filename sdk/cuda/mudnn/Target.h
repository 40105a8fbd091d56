// muDNN's stand-in computes through ATen's CUDA kernels, on the handle's stream. (What sdk/mudnn
// asks of a target: sdk/host/mudnn/Target.h.)
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAGuard.h>

#include <functional>
#include <optional>

#include "CaptureMemory.h"
#include "DirectCalls.h"
#include "Lending.h"
#include "musa_cuda.h"

namespace musa::dnn::internal::target {

inline at::Device device(int musa_device) {
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(cuda::ordinal(musa_device)));
}

inline bool accessible(const void* pointer, size_t bytes, int device) {
  return cuda::device_accessible(pointer, bytes, device);
}

// Makes the handle's stream the one that ATen's kernels are launched on and its temporaries belong
// to, while a call is checked and runs.
class OnStream {
 public:
  OnStream(int device, musaStream_t stream);

 private:
  std::optional<c10::cuda::CUDAStreamGuard> guard_;  // none where all is so already
  std::optional<CaptureMemory> memory_;
};

// Launches: the stream keeps the order.
inline bool run(int /*device*/, musaStream_t /*stream*/, void (*body)(void*), void* argument,
                const char* /*name*/) {
  body(argument);
  return true;
}

// The same for a few elements: one launch; false, and nothing done, where another device is
// current.
bool map(int device, musaStream_t stream, const DirectMap& m, const char* name);
bool sum(int device, musaStream_t stream, const DirectSum& s, const char* name);

// What at::mm makes of such operands, to the bit; false, and nothing done, where a setting of
// ATen's chooses another way.
constexpr bool kHasProduct = true;
bool product(int device, musaStream_t stream, const DirectProduct& p);

// Nothing has to wait for its turn: run() never says so.
inline void enqueue(int /*device*/, musaStream_t /*stream*/, std::function<void()> work,
                    const char* /*name*/) {
  work();
}

void synchronize(int device, musaStream_t stream);

}  // namespace musa::dnn::internal::target
