// thrust and cub.
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>

#include <cub/cub.cuh>
#include <vector>

#include "check.cuh"

int main() {
  const int n = 1000;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) {
    host[i] = (i * 7919) % n;
  }
  int *values, *sums;
  CHECK_CUDA(cudaMalloc(&values, n * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&sums, n * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(values, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  thrust::device_ptr<int> begin(values);
  thrust::sort(thrust::cuda::par.on(stream), begin, begin + n);
  void* scratch = nullptr;
  size_t bytes = 0;
  cub::DeviceScan::InclusiveSum(scratch, bytes, values, sums, n, stream);
  CHECK_CUDA(cudaMalloc(&scratch, bytes));
  cub::DeviceScan::InclusiveSum(scratch, bytes, values, sums, n, stream);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaMemcpy(host.data(), sums, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf(host[n - 1] == n * (n - 1) / 2 && host[2] == 3 ? "ok\n" : "wrong\n");
  return 0;
}
