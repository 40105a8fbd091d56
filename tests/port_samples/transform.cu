// cufft, cusolver, cusparse, nccl and the driver: they port, by their tables.
#include <cuda.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <nccl.h>

#include "check.cuh"

int main() {
  CUdevice device;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) {
    return 1;
  }
  cufftHandle plan;
  cufftPlan1d(&plan, 256, CUFFT_C2C, 1);
  cufftComplex* data = nullptr;
  cufftExecC2C(plan, data, data, CUFFT_FORWARD);
  cusolverDnHandle_t solver;
  cusolverDnCreate(&solver);
  cusparseHandle_t sparse;
  cusparseCreate(&sparse);
  ncclComm_t comm;
  ncclCommInitAll(&comm, 1, nullptr);
  ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comm, nullptr);
  return 0;
}
