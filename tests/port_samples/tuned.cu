// What is written for one chip or one release: inline PTX, architectures, versions, a launch from a
// kernel, an unknown call.
#include "check.cuh"

__device__ unsigned lane() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
  unsigned result;
  asm volatile("mov.u32 %0, %laneid;" : "=r"(result));
  return result;
#else
  return threadIdx.x % 32;
#endif
}

__global__ void child() {}

__global__ void parent() { child<<<1, 1>>>(); }

int main() {
#if CUDART_VERSION >= 12000
  cudaFromTheFuture(0);
#endif
  return 0;
}
