// The plainest launch: one thread per element.
#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/core/DynamicCast.h>
#include <c10/core/ScalarType.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <c10/util/complex.h>

#include <cstdint>
#include <limits>

namespace at::native {

constexpr int kEachThreads = 256;

template <typename func_t>
__global__ void each_kernel(int64_t count, const func_t __grid_constant__ body) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    body(i);
  }
}

/// body(i) for i in [0, count), in any order and in parallel, on the current stream of `device`.
template <typename func_t>
void for_each_index(Device device, int64_t count, const func_t& body) {
  if (count == 0) {
    return;
  }
  const int64_t blocks = (count + kEachThreads - 1) / kEachThreads;
  TORCH_CHECK(blocks <= std::numeric_limits<int32_t>::max(), count,
              " elements are too many for one launch");
  const c10::cuda::CUDAGuard guard(device);
  each_kernel<<<static_cast<unsigned int>(blocks), kEachThreads, 0,
                at::cuda::getCurrentCUDAStream()>>>(count, body);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

/// Calls the function given last, of no arguments, in which `word_t` is the type with elements of
/// that many bytes. (A macro, as AT_DISPATCH's are: nvcc takes no kernel's lambda inside of a
/// generic one.)
#define DISPATCH_WORD(ELEMENT_SIZE, ...)                                             \
  [&] {                                                                              \
    const int64_t element_size_ = ELEMENT_SIZE;                                      \
    switch (element_size_) {                                                         \
      DISPATCH_WORD_CASE_(1, uint8_t, __VA_ARGS__)                                   \
      DISPATCH_WORD_CASE_(2, uint16_t, __VA_ARGS__)                                  \
      DISPATCH_WORD_CASE_(4, uint32_t, __VA_ARGS__)                                  \
      DISPATCH_WORD_CASE_(8, uint64_t, __VA_ARGS__)                                  \
      DISPATCH_WORD_CASE_(16, c10::complex<double>, __VA_ARGS__)                     \
      default:                                                                       \
        TORCH_CHECK(false, "elements of ", element_size_, " bytes cannot be moved"); \
    }                                                                                \
  }()
#define DISPATCH_WORD_CASE_(BYTES, TYPE, ...) \
  case BYTES: {                               \
    using word_t = TYPE;                      \
    return __VA_ARGS__();                     \
  }

/// Stores a value into an element of any dtype; no cast where the types agree.
template <typename value_t>
__host__ __device__ inline void store_element(char* element, ScalarType dtype, value_t value) {
  if (dtype == c10::CppTypeToScalarType<value_t>::value) {
    *reinterpret_cast<value_t*>(element) = value;
  } else {
    c10::cast_and_store<value_t>(dtype, element, value);
  }
}

}  // namespace at::native
