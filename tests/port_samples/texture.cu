// Textures: reported.
#include "check.cuh"

__global__ void resize(cudaTextureObject_t image, float* out, int width) {
  out[threadIdx.x] = tex2D<float>(image, threadIdx.x + 0.5f, width + 0.5f);
}

int main() {
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CHECK_CUDA(cudaMallocArray(&array, &format, 64, 64));
  return 0;
}
