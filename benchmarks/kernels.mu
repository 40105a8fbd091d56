// What kernels cost on the host stand-in, printed for bench.py: one "name value reference" a line.
// Run with OMP_NUM_THREADS=1: the loop they are compared with has one thread, too.
#include <musa_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

constexpr int kFloats = 10'000'000;

template <typename Body>
double best_seconds(int rounds, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const auto started = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    best = std::min(best, took.count());
  }
  return best;
}

__global__ void scale_and_add(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = 2.0f * a[i] + b[i];
  }
}

__attribute__((noinline)) void plain_loop(const float* a, const float* b, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = 2.0f * a[i] + b[i];
  }
}

__global__ void only_barriers(int times) {
  for (int i = 0; i < times; ++i) {
    __syncthreads();
  }
}

__global__ void only_shuffles(float* out, int times) {
  float value = threadIdx.x;
  for (int i = 0; i < times; ++i) {
    value = __shfl_xor_sync(0xffffffff, value, 1);
  }
  out[threadIdx.x] = value;
}

}  // namespace

int main() {
  const std::vector<float> host(kFloats, 1.5f);
  std::vector<float> other = host;
  std::vector<float> result(kFloats);
  float* device[3];
  for (float*& pointer : device) {
    if (musaMalloc(&pointer, kFloats * sizeof(float)) != musaSuccess) return 1;
    musaMemcpy(pointer, host.data(), kFloats * sizeof(float), musaMemcpyHostToDevice);
  }
  // In turns: what slows the machine down slows both.
  double loop = 1e30, kernel = 1e30;
  for (int round = 0; round < 60; ++round) {
    loop = std::min(loop, best_seconds(1, [&] {
                      plain_loop(host.data(), other.data(), result.data(), kFloats);
                    }));
    kernel = std::min(kernel, best_seconds(1, [&] {
                        scale_and_add<<<(kFloats + 255) / 256, 256>>>(device[0], device[1],
                                                                      device[2], kFloats);
                        musaDeviceSynchronize();
                      }));
  }
  std::printf("barrier_free_ms %g %g\n", kernel * 1e3, loop * 1e3);

  constexpr int kTimes = 10000;
  constexpr int kThreads = 256;
  const double barriers = best_seconds(5, [&] {
    only_barriers<<<1, kThreads>>>(kTimes);
    musaDeviceSynchronize();
  });
  std::printf("barrier_ns %g 0\n", barriers * 1e9 / kTimes / kThreads);
  const double shuffles = best_seconds(5, [&] {
    only_shuffles<<<1, kThreads>>>(device[0], kTimes);
    musaDeviceSynchronize();
  });
  std::printf("shuffle_ns %g 0\n", shuffles * 1e9 / kTimes / kThreads);
  return musaGetLastError() == musaSuccess ? 0 : 1;
}
