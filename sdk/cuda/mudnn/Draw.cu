// Dropout's decisions on the device: the host's numbers (sdk/host/mudnn/Draw.cpp), element by
// element, and seed and offset read when the kernel runs, so that a graph draws anew at every
// launch.
#include <c10/util/Exception.h>  // PhiloxRNGEngine.h uses it on the device

#include <ATen/core/PhiloxRNGEngine.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "Draw.h"

namespace musa::dnn::internal {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 65536;

__global__ void draw_kernel(bool* kept, int64_t count, double p, uint64_t seed,
                            const int64_t* device_seed, uint64_t offset,
                            const int64_t* device_offset) {
  if (device_seed != nullptr) seed = static_cast<uint64_t>(*device_seed);
  if (device_offset != nullptr) offset += static_cast<uint64_t>(*device_offset);
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads) {
    at::Philox4_32 engine(seed, /*subsequence=*/i, offset / kWordsPerBlock);
    kept[i] = engine() * 0x1p-32 >= p;
  }
}

const int64_t* address(const at::Tensor& word) {
  return word.defined() ? word.const_data_ptr<int64_t>() : nullptr;
}

}  // namespace

void draw(const at::Tensor& kept, double p, const Word& seed, const Word& offset) {
  const int64_t count = kept.numel();
  if (count == 0) return;
  const auto blocks = std::min((count + kThreads - 1) / kThreads, kMostBlocks);
  draw_kernel<<<static_cast<unsigned int>(blocks), kThreads, 0,
                c10::cuda::getCurrentCUDAStream()>>>(kept.mutable_data_ptr<bool>(), count, p,
                                                     seed.value, address(seed.device), offset.value,
                                                     address(offset.device));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace musa::dnn::internal
