// curand in kernels and from the host.
#include <curand.h>
#include <curand_kernel.h>

#include <vector>

#include "check.cuh"

__global__ void draw(float* out, int n, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i + 3 < n) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, i, 0, &state);
    const float4 four = curand_uniform4(&state);
    out[4 * i] = four.x;
    out[4 * i + 1] = four.y;
    out[4 * i + 2] = four.z;
    out[4 * i + 3] = four.w;
  }
}

float mean(const float* device, int n) {
  std::vector<float> host(n);
  CHECK_CUDA(cudaMemcpy(host.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost));
  float total = 0;
  for (float value : host) {
    total += value;
  }
  return total / n;
}

int main() {
  const int n = 4096;
  float* device;
  CHECK_CUDA(cudaMalloc(&device, n * sizeof(float)));
  draw<<<n / 4 / 128, 128>>>(device, n, 7);
  const float in_kernel = mean(device, n);
  curandGenerator_t generator;
  bool right =
      curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS;
  right = right && curandSetPseudoRandomGeneratorSeed(generator, 11) == CURAND_STATUS_SUCCESS;
  right = right && curandGenerateUniform(generator, device, n) == CURAND_STATUS_SUCCESS;
  const float from_host = mean(device, n);
  curandDestroyGenerator(generator);
  right = right && in_kernel > 0.45f && in_kernel < 0.55f && from_host > 0.45f && from_host < 0.55f;
  std::printf(right ? "ok\n" : "wrong\n");
  return 0;
}
