// Dropout on the device: the host's numbers (sdk/host/mudnn/Draw.cpp), one kernel for all of a
// direction, and seed and offset read when the kernel runs, so that a graph draws anew at every
// launch.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "Draw.h"
#include "murand_philox.h"

namespace musa::dnn::internal {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerProcessor = 8;  // what registers must allow: 2048 threads, as H100 runs
constexpr int kLoadBytes = 16;          // what one instruction moves at most

// How many elements a thread takes at a time: whole Philox blocks, and a full load of them.
template <class T>
constexpr int kWidth = std::max<int>(kWordsPerBlock, kLoadBytes / sizeof(T));

template <class T, int width>
struct alignas(std::min<size_t>(width * sizeof(T), kLoadBytes)) Pack {
  T v[width];
};

// What a thread works on: elements [first, first + width), or, if not `whole`, as many of them as
// are `left`, one by one.
template <int width, bool whole>
struct Place {
  int64_t first, left = width;

  template <class T>
  __device__ Pack<T, width> load(const T* memory) const {
    if constexpr (whole) return *reinterpret_cast<const Pack<T, width>*>(memory + first);
    Pack<T, width> pack{};
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (j < left) pack.v[j] = memory[first + j];
    }
    return pack;
  }

  template <class T>
  __device__ void store(T* memory, const Pack<T, width>& pack) const {
    if constexpr (whole) {
      *reinterpret_cast<Pack<T, width>*>(memory + first) = pack;
    } else {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (j < left) memory[first + j] = pack.v[j];
      }
    }
  }
};

// Calls body(place) for every place of this thread. `aligned`: all memory begins where a Pack may.
template <int width, class Body>
__device__ void for_each_place(int64_t count, bool aligned, Body body) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t whole = aligned ? count - count % width : 0;
  for (int64_t first = thread * width; first < whole; first += threads * width) {
    body(Place<width, true>{first});
  }
  for (int64_t first = whole + thread * width; first < count; first += threads * width) {
    body(Place<width, false>{first, count - first});
  }
}

// Where a kernel finds its numbers.
struct Source {
  uint64_t seed, offset;
  const int64_t *device_seed, *device_offset;  // null: not in memory
  uint32_t first_kept;
};

// What elements [first, first + width) ask.
template <int width>
struct Draws {
  __device__ explicit Draws(const Source& s)
      : seed(s.device_seed == nullptr ? s.seed : static_cast<uint64_t>(*s.device_seed)),
        block((s.offset + (s.device_offset == nullptr ? 0 : *s.device_offset)) / kWordsPerBlock),
        first_kept(s.first_kept) {}

  __device__ Pack<bool, width> operator()(int64_t first) const {
    rand::Words4 words[width / kWordsPerBlock];
    rand::philox_blocks(seed, static_cast<uint64_t>(first) / kWordsPerBlock, block, words);
    Pack<bool, width> kept;
#pragma unroll
    for (int j = 0; j < width; j += kWordsPerBlock) {
      const rand::Words4& w = words[j / kWordsPerBlock];
      kept.v[j] = w.x >= first_kept;
      kept.v[j + 1] = w.y >= first_kept;
      kept.v[j + 2] = w.z >= first_kept;
      kept.v[j + 3] = w.w >= first_kept;
    }
    return kept;
  }

  uint64_t seed, block;
  uint32_t first_kept;
};

// In two products, as everywhere: what is dropped becomes a zero with its sign, or NaN.
template <class T, int width, class Mask>
__device__ Pack<T, width> scaled(const Pack<T, width>& in, const Pack<Mask, width>& kept,
                                 at::opmath_type<T> scale) {
  using op = at::opmath_type<T>;
  Pack<T, width> out;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    out.v[j] = static_cast<T>(static_cast<op>(in.v[j]) * (kept.v[j] ? op(1) : op(0)) * scale);
  }
  return out;
}

__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    draw_kernel(bool* kept, int64_t count, Source source, bool aligned) {
  constexpr int width = kWidth<bool>;
  const Draws<width> draws(source);
  for_each_place<width>(count, aligned,
                        [&](const auto& place) { place.store(kept, draws(place.first)); });
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    drop_kernel(T* out, const T* in, bool* kept, int64_t count, at::opmath_type<T> scale,
                Source source, bool aligned) {
  constexpr int width = kWidth<T>;
  const Draws<width> draws(source);
  for_each_place<width>(count, aligned, [&](const auto& place) {
    const auto values = place.load(in);  // under way while numbers are made
    const Pack<bool, width> keeps = draws(place.first);
    place.store(kept, keeps);
    place.store(out, scaled(values, keeps, scale));
  });
}

// The mask is the caller's: any byte but 0 keeps.
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    scale_kept_kernel(T* out, const T* in, const uint8_t* kept, int64_t count,
                      at::opmath_type<T> scale, bool aligned) {
  constexpr int width = kWidth<T>;
  for_each_place<width>(count, aligned, [&](const auto& place) {
    const auto values = place.load(in);
    const auto keeps = place.load(kept);
    place.store(out, scaled(values, keeps, scale));
  });
}

Source source_of(double p, const Word& seed, const Word& offset) {
  const auto address = [](const Word& word) {
    return word.device.defined() ? word.device.const_data_ptr<int64_t>() : nullptr;
  };
  return {seed.value, offset.value, address(seed), address(offset), first_kept(p)};
}

// At most as many blocks as the device runs at once: threads go on from there.
unsigned int blocks_for(int64_t count, int width) {
  const cudaDeviceProp& device = *at::cuda::getCurrentDeviceProperties();
  const int64_t elements = static_cast<int64_t>(kThreads) * width;
  const int64_t at_once = static_cast<int64_t>(device.multiProcessorCount) *
                          (device.maxThreadsPerMultiProcessor / kThreads);
  return static_cast<unsigned int>(std::min((count + elements - 1) / elements, at_once));
}

template <class T, int width>
bool is_aligned(const T* memory) {
  return reinterpret_cast<uintptr_t>(memory) % alignof(Pack<T, width>) == 0;
}

template <class T>
bool are_aligned(const T* out, const T* in, const void* kept) {
  constexpr int width = kWidth<T>;
  return is_aligned<T, width>(out) && is_aligned<T, width>(in) &&
         is_aligned<uint8_t, width>(static_cast<const uint8_t*>(kept));
}

#define DISPATCH_FLOATING(type, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "dropout", __VA_ARGS__)

}  // namespace

void draw(const at::Tensor& kept, double p, const Word& seed, const Word& offset) {
  const int64_t count = kept.numel();
  if (count == 0) return;
  constexpr int width = kWidth<bool>;
  bool* data = kept.mutable_data_ptr<bool>();
  draw_kernel<<<blocks_for(count, width), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      data, count, source_of(p, seed, offset), is_aligned<bool, width>(data));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void drop(const at::Tensor& out, const at::Tensor& in, const at::Tensor& kept, double p,
          const Word& seed, const Word& offset) {
  const int64_t count = out.numel();
  if (count == 0) return;
  DISPATCH_FLOATING(out.scalar_type(), [&] {
    auto* to = out.mutable_data_ptr<scalar_t>();
    const auto* from = in.const_data_ptr<scalar_t>();
    bool* keeps = kept.mutable_data_ptr<bool>();
    drop_kernel<<<blocks_for(count, kWidth<scalar_t>), kThreads, 0,
                  c10::cuda::getCurrentCUDAStream()>>>(
        to, from, keeps, count, static_cast<at::opmath_type<scalar_t>>(1 / (1 - p)),
        source_of(p, seed, offset), are_aligned(to, from, keeps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

void scale_kept(const at::Tensor& out, const at::Tensor& in, const at::Tensor& kept, double scale) {
  const int64_t count = out.numel();
  if (count == 0) return;
  DISPATCH_FLOATING(out.scalar_type(), [&] {
    auto* to = out.mutable_data_ptr<scalar_t>();
    const auto* from = in.const_data_ptr<scalar_t>();
    const auto* keeps = static_cast<const uint8_t*>(kept.const_data_ptr());
    scale_kept_kernel<<<blocks_for(count, kWidth<scalar_t>), kThreads, 0,
                        c10::cuda::getCurrentCUDAStream()>>>(
        to, from, keeps, count, static_cast<at::opmath_type<scalar_t>>(scale),
        are_aligned(to, from, keeps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

}  // namespace musa::dnn::internal
