// Loops that fill tensors with random numbers.
//
// One Philox round yields four 32-bit words. Threads are numbered by the elements they fill, and
// each draws from a subsequence of its own, so an element's value depends on the seed, the
// generator's offset and its position alone: never on how many threads, blocks or cores there are.
#pragma once

#include <ATen/Generator.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <curand_kernel.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <tuple>

#include "kernels/ported/EachElement.cuh"

namespace at::native::philox {

using Words = std::array<uint32_t, 4>;

constexpr int kThreads = 256;

/// The one round that a thread draws from, in the subsequence of its number.
__device__ inline Words draw_round(const PhiloxCudaState& philox, uint64_t thread) {
  const auto [seed, offset] = at::cuda::philox::unpack(philox);
  curandStatePhilox4_32_10_t state;
  curand_init(seed, thread, offset, &state);
  const uint4 words = curand4(&state);
  return {words.x, words.y, words.z, words.w};
}

/// Uniform in [0, 1), on a grid of 2^-bits: every such number is exact in a type with that many
/// digits.
__host__ __device__ inline float unit_float(uint32_t word, int bits) {
  return static_cast<float>(word >> (32 - bits)) * std::ldexp(1.0f, -bits);
}

__host__ __device__ inline double unit_double(uint32_t high, uint32_t low) {
  const uint64_t word = (static_cast<uint64_t>(high) << 32) | low;
  return static_cast<double>(word >> 11) * 0x1p-53;
}

/// Four values from one round (two of double), uniform in [0, 1).
template <typename value_t>
struct Uniform {
  using result_t = std::array<value_t, sizeof(value_t) == 8 ? 2 : 4>;
  __host__ __device__ static result_t draw(const Words& w) {
    if constexpr (sizeof(value_t) == 8) {
      return {unit_double(w[0], w[1]), unit_double(w[2], w[3])};
    } else {
      return {unit_float(w[0], 24), unit_float(w[1], 24), unit_float(w[2], 24),
              unit_float(w[3], 24)};
    }
  }
};

/// As many values from one round, normal with mean 0 and deviation 1 (Box and Muller's
/// transformation).
template <typename value_t>
struct Normal {
  using result_t = typename Uniform<value_t>::result_t;
  __host__ __device__ static result_t draw(const Words& w) {
    result_t values = Uniform<value_t>::draw(w);
    for (size_t i = 0; i < values.size(); i += 2) {
      const value_t radius = std::sqrt(value_t(-2) * std::log(value_t(1) - values[i]));
      const value_t angle = value_t(2 * 3.14159265358979323846) * values[i + 1];
      values[i] = radius * std::cos(angle);
      values[i + 1] = radius * std::sin(angle);
    }
    return values;
  }
};

/// Element i of the iterator becomes body(words)[i % n], n values being made from one round.
template <typename func_t>
__global__ void nullary_kernel(int64_t numel, const PhiloxCudaState philox, char* out,
                               ScalarType dtype,
                               const OffsetCalculator<1> __grid_constant__ offsets,
                               const func_t __grid_constant__ body) {
  using result_t = decltype(body(Words{}));
  constexpr int64_t kValues = std::tuple_size_v<result_t>;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t first = thread * kValues;
  if (first >= numel) {
    return;
  }
  const Words words = draw_round(philox, static_cast<uint64_t>(thread));
  const result_t values = body(words);
  for (int64_t i = 0; i < kValues && first + i < numel; ++i) {
    store_element(out + offsets.get(static_cast<uint32_t>(first + i))[0], dtype, values[i]);
  }
}

/// As above with one input: element i becomes body(input value, word i % 4).
template <typename out_t, typename in_t, typename func_t>
__global__ void unary_kernel(int64_t numel, const PhiloxCudaState philox, char* out,
                             ScalarType dtype, const char* in,
                             const OffsetCalculator<2> __grid_constant__ offsets,
                             const func_t __grid_constant__ body) {
  constexpr int64_t kValues = 4;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t first = thread * kValues;
  if (first >= numel) {
    return;
  }
  const Words words = draw_round(philox, static_cast<uint64_t>(thread));
  for (int64_t i = 0; i < kValues && first + i < numel; ++i) {
    const auto at = offsets.get(static_cast<uint32_t>(first + i));
    store_element<out_t>(out + at[0], dtype,
                         body(*reinterpret_cast<const in_t*>(in + at[1]), words[i]));
  }
}

inline unsigned int blocks_for(int64_t numel, int64_t values_per_thread) {
  const int64_t per_block = kThreads * values_per_thread;
  return static_cast<unsigned int>((numel + per_block - 1) / per_block);
}

/// Reserves one round for every thread of a launch; two launches never share a number.
inline PhiloxCudaState reserve_round(CUDAGeneratorImpl* generator) {
  constexpr uint64_t kWordsPerRound = 4;
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  return generator->philox_cuda_state(kWordsPerRound);
}

template <typename func_t>
void fill(TensorIteratorBase& iter, CUDAGeneratorImpl* generator, const func_t& body) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto& part : iter.with_32bit_indexing()) {
      fill(part, generator, body);
    }
    return;
  }
  const PhiloxCudaState philox = reserve_round(generator);
  const c10::cuda::CUDAGuard guard(iter.device(0));
  constexpr int64_t kValues = std::tuple_size_v<decltype(body(Words{}))>;
  nullary_kernel<<<blocks_for(iter.numel(), kValues), kThreads, 0,
                   at::cuda::getCurrentCUDAStream()>>>(
      iter.numel(), philox, static_cast<char*>(iter.data_ptr(0)), iter.dtype(0),
      make_offset_calculator<1>(iter), body);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <typename out_t, typename in_t, typename func_t>
void transform(TensorIteratorBase& iter, CUDAGeneratorImpl* generator, const func_t& body) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto& part : iter.with_32bit_indexing()) {
      transform<out_t, in_t>(part, generator, body);
    }
    return;
  }
  const PhiloxCudaState philox = reserve_round(generator);
  const c10::cuda::CUDAGuard guard(iter.device(0));
  unary_kernel<out_t, in_t, func_t>
      <<<blocks_for(iter.numel(), 4), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
          iter.numel(), philox, static_cast<char*>(iter.data_ptr(0)), iter.dtype(0),
          static_cast<const char*>(iter.data_ptr(1)), make_offset_calculator<2>(iter), body);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

/// The generator an op was given, or the default one of the device it runs on.
inline CUDAGeneratorImpl* generator_of(const std::optional<Generator>& generator, Device device) {
  return get_generator_or_default<CUDAGeneratorImpl>(
      generator, cuda::detail::getDefaultCUDAGenerator(device.index()));
}

}  // namespace at::native::philox
