// What this target computes by itself: one launch, without ATen.
#include "DirectCalls.h"

#include "Target.h"

namespace musa::dnn::internal::target {
namespace {

constexpr int kLanes = 32;

template <DirectFunction function>
__global__ void map_kernel(int n, float* out, const float* a, const float* b, float number) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = direct<function>(a[i], b == nullptr ? number : b[i]);
}

// One warp.
__global__ void sum_kernel(int n, float* out, const float* a, bool mean) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kLanes) sum += a[i];
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0) *out = static_cast<float>(mean ? sum / n : sum);
}

// A stream takes kernels where its device is current; a caller on another goes the long way.
bool is_current(int device) {
  int current = -1;
  return cudaGetDevice(&current) == cudaSuccess && current == cuda::ordinal(device);
}

}  // namespace

bool map(int device, musaStream_t stream, const DirectMap& m, const char* /*name*/) {
  if (!is_current(device)) return false;
  constexpr int kThreads = 256;
  const int n = static_cast<int>(m.n), blocks = (n + kThreads - 1) / kThreads;
  with_direct(m.function, [&]<DirectFunction function>() {
    map_kernel<function><<<blocks, kThreads, 0, stream>>>(n, m.out, m.a, m.b, m.number);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return true;
}

bool sum(int device, musaStream_t stream, const DirectSum& s, const char* /*name*/) {
  if (!is_current(device)) return false;
  sum_kernel<<<1, kLanes, 0, stream>>>(static_cast<int>(s.n), s.out, s.a, s.mean);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return true;
}

}  // namespace musa::dnn::internal::target
