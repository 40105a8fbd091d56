// The runtime: memory, a launch, errors, device properties.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "check.cuh"

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    sum[i] = a[i] + b[i];
  }
}

int main() {
  const int n = 1000;
  std::vector<float> a(n, 1.5f), b(n, 2.0f), sum(n);
  float *device_a, *device_b, *device_sum;
  CHECK_CUDA(cudaMalloc(&device_a, n * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&device_b, n * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&device_sum, n * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(device_b, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(device_a, device_b, device_sum, n);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpy(sum.data(), device_sum, n * sizeof(float), cudaMemcpyDeviceToHost));
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  CHECK_CUDA(cudaFree(device_a));
  CHECK_CUDA(cudaFree(device_b));
  CHECK_CUDA(cudaFree(device_sum));
  std::printf(sum[0] == 3.5f && sum[n - 1] == 3.5f && properties.warpSize > 0
                  ? "ok\n"
                  : "cudaMemcpy lied\n");
  return 0;
}
