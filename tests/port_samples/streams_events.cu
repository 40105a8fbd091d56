// Streams, events, page-locked memory, asynchronous copies.
#include "check.cuh"

__global__ void scale(int* data, int n, int factor) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    data[i] *= factor;
  }
}

int main() {
  const int n = 4096;
  int *host, *device;
  CHECK_CUDA(cudaMallocHost(&host, n * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; ++i) {
    host[i] = i;
  }
  cudaStream_t first, second;
  CHECK_CUDA(cudaStreamCreate(&first));
  CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  cudaEvent_t copied, begin, end;
  CHECK_CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  CHECK_CUDA(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyHostToDevice, first));
  CHECK_CUDA(cudaEventRecord(copied, first));
  CHECK_CUDA(cudaStreamWaitEvent(second, copied, 0));
  CHECK_CUDA(cudaEventRecord(begin, second));
  scale<<<8, 128, 0, second>>>(device, n, 3);
  CHECK_CUDA(cudaEventRecord(end, second));
  CHECK_CUDA(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, second));
  CHECK_CUDA(cudaStreamSynchronize(second));
  float milliseconds = -1;
  CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
  bool right = milliseconds >= 0 && cudaEventQuery(end) == cudaSuccess;
  for (int i = 0; i < n; ++i) {
    right = right && host[i] == 3 * i;
  }
  CHECK_CUDA(cudaStreamDestroy(first));
  CHECK_CUDA(cudaStreamDestroy(second));
  CHECK_CUDA(cudaFreeHost(host));
  CHECK_CUDA(cudaFree(device));
  std::printf(right ? "ok\n" : "wrong\n");
  return 0;
}
