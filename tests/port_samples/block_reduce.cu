// Shared memory, barriers and warp shuffles; no lane count is assumed.
#include "check.cuh"

__global__ void sum(const float* in, float* out, int n) {
  __shared__ float partial[1024];
  float mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    mine += in[i];
  }
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    mine += __shfl_down_sync(0xffffffff, mine, offset);
  }
  if (threadIdx.x % warpSize == 0) {
    partial[threadIdx.x / warpSize] = mine;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int warp = 0; warp < (blockDim.x + warpSize - 1) / warpSize; ++warp) {
      total += partial[warp];
    }
    atomicAdd(out, total);
  }
}

int main() {
  const int n = 1000;
  float *in, *out, host = 0;
  CHECK_CUDA(cudaMallocManaged(&in, n * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&out, sizeof(float)));
  CHECK_CUDA(cudaMemset(out, 0, sizeof(float)));
  for (int i = 0; i < n; ++i) {
    in[i] = 1;
  }
  sum<<<1, 256>>>(in, out, n);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaMemcpy(&host, out, sizeof(float), cudaMemcpyDeviceToHost));
  std::printf(host == n ? "ok\n" : "wrong\n");
  return 0;
}
