// cublas: ports; the host's toolkit has no muBLAS to compile it against.
#include <cublas_v2.h>

#include "check.cuh"

int main() {
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
    return 1;
  }
  const float one = 1, zero = 0;
  float *a, *b, *c;
  CHECK_CUDA(cudaMalloc(&a, 64 * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&b, 64 * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&c, 64 * sizeof(float)));
  cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &one, a, 8, b, 8, &zero, c, 8);
  cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, CUDA_R_32F, 8, b, CUDA_R_32F, 8,
               &zero, c, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  cublasDestroy(handle);
  std::printf("ok\n");
  return 0;
}
