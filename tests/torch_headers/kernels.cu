// What a third party writes against PyTorch's own device headers: one operator for each family of
// them. tests/runtime/test_ported_headers.py builds it and compares every operator with the CPU.
#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/SharedReduceOps.h>
#include <ATen/native/TensorIterator.h>
#include <torch/library.h>

#include <ATen/cuda/AsmUtils.cuh>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <ATen/cuda/DeviceUtils.cuh>
#include <ATen/cuda/ScanUtils.cuh>
#include <ATen/cuda/detail/IndexUtils.cuh>
#include <ATen/cuda/detail/KernelUtils.h>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <ATen/cuda/detail/TensorInfo.cuh>
#include <ATen/native/cuda/KernelUtils.cuh>
#include <ATen/native/cuda/LaunchUtils.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/native/cuda/MemoryAccess.cuh>
#include <ATen/native/cuda/PersistentSoftmax.cuh>
#include <ATen/native/cuda/Reduce.cuh>
#include <ATen/native/cuda/SortingCommon.cuh>
#include <ATen/native/cuda/SortingRadixSelect.cuh>
#include <ATen/native/cuda/block_reduce.cuh>
#include <ATen/native/cuda/thread_constants.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAMathCompat.h>
#include <c10/cuda/CUDAStream.h>
#include <curand_kernel.h>

#include <limits>
#include <mutex>
#include <tuple>

namespace third_party {
namespace {

using at::Tensor;
using at::native::gpu_kernel;
using at::native::gpu_kernel_multiple_outputs;
using at::native::gpu_kernel_with_scalars;
using at::native::gpu_reduce_kernel;

// ---- elementwise: Loops.cuh ----

Tensor scaled(const Tensor& x, double factor) {
  Tensor out = at::empty({0}, x.options());
  auto iter = at::TensorIterator::unary_op(out, x);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, iter.common_dtype(), "scaled", [&] {
    using opmath_t = at::opmath_type<scalar_t>;
    const opmath_t by = static_cast<opmath_t>(factor);
    gpu_kernel(iter,
               [by] GPU_LAMBDA(scalar_t a) -> scalar_t { return static_cast<opmath_t>(a) * by; });
  });
  return iter.output();
}

// Of two dtypes, either of which may be a CPU scalar.
Tensor signed_difference(const Tensor& a, const Tensor& b) {
  Tensor out;
  auto iter = at::TensorIterator::borrowing_binary_op(out, a, b);
  AT_DISPATCH_ALL_TYPES_AND2(
      at::kHalf, at::kBFloat16, iter.common_dtype(), "signed_difference", [&] {
        gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t x, scalar_t y) -> scalar_t {
          return x > y ? x - y : y - x;
        });
      });
  return iter.output();
}

Tensor opmath_product(const Tensor& a, const Tensor& b) {
  Tensor out;
  auto iter = at::TensorIterator::borrowing_binary_op(out, a, b);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, iter.common_dtype(), "opmath_product", [&] {
        using opmath_t = at::opmath_type<scalar_t>;
        at::native::opmath_symmetric_gpu_kernel_with_scalars<scalar_t>(
            iter, [] GPU_LAMBDA(opmath_t x, opmath_t y) -> opmath_t { return x * y; });
      });
  return iter.output();
}

std::tuple<Tensor, Tensor> split_parts(const Tensor& x) {
  Tensor whole = at::empty_like(x);
  Tensor rest = at::empty_like(x);
  auto iter =
      at::TensorIteratorConfig().add_output(whole).add_output(rest).add_const_input(x).build();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "split_parts", [&] {
    gpu_kernel_multiple_outputs(iter,
                                [] GPU_LAMBDA(scalar_t a) -> thrust::tuple<scalar_t, scalar_t> {
                                  const scalar_t part = std::trunc(a);
                                  return {part, a - part};
                                });
  });
  return {whole, rest};
}

Tensor with_sign_of(const Tensor& magnitude, const Tensor& sign) {
  Tensor out;
  auto iter = at::TensorIterator::borrowing_binary_op(out, magnitude, sign);
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "with_sign_of", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t {
      return c10::cuda::compat::copysign(a, b);
    });
  });
  return iter.output();
}

// ---- reductions: Reduce.cuh ----

template <typename acc_t>
struct SquareSum {
  __device__ acc_t reduce(acc_t acc, acc_t value, int64_t /*index*/) const {
    return acc + value * value;
  }
  __device__ acc_t combine(acc_t a, acc_t b) const { return a + b; }
  __device__ acc_t project(acc_t acc) const { return acc; }
  static __device__ acc_t translate_idx(acc_t acc, int64_t /*base*/) { return acc; }
  __device__ acc_t warp_shfl_down(acc_t value, int offset) const {
    return WARP_SHFL_DOWN(value, offset);
  }
};

Tensor square_sum(const Tensor& x, at::IntArrayRef dims, bool keepdim) {
  Tensor out = at::native::create_reduction_result(x, dims, keepdim, x.scalar_type());
  auto iter = at::native::make_reduction("square_sum", out, x, dims, keepdim, x.scalar_type());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "square_sum", [&] {
    using acc_t = at::acc_type<scalar_t, true>;
    gpu_reduce_kernel<scalar_t, scalar_t>(iter, SquareSum<acc_t>{}, acc_t(0));
  });
  return out;
}

Tensor all_of(const Tensor& x, int64_t dim) {
  Tensor out = at::native::create_reduction_result(x, dim, false, at::kBool);
  auto iter = at::native::make_reduction("all_of", out, x, dim, false, at::kBool);
  const auto both = [] GPU_LAMBDA(bool a, bool b) -> bool { return a && b; };
  gpu_reduce_kernel<bool, bool>(iter, at::native::func_wrapper<bool>(both), true);
  return out;
}

// With PyTorch's own operations: mean and variance, and the place of the largest. (Outside of the
// function: CUDA takes no type of a function's own for a kernel.)
template <typename scalar_t>
using Welford =
    at::native::WelfordOps<scalar_t, scalar_t, int32_t, thrust::pair<scalar_t, scalar_t>>;

template <typename scalar_t>
struct VarianceOnly : Welford<scalar_t> {
  using Welford<scalar_t>::Welford;
  __device__ scalar_t project(typename Welford<scalar_t>::acc_t acc) const {
    return Welford<scalar_t>::project(acc).first;
  }
};

Tensor variance(const Tensor& x, at::IntArrayRef dims) {
  Tensor out = at::native::create_reduction_result(x, dims, false, x.scalar_type());
  auto iter = at::native::make_reduction("variance", out, x, dims, false, x.scalar_type());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "variance", [&] {
    gpu_reduce_kernel<scalar_t, scalar_t, 2>(iter, VarianceOnly<scalar_t>(scalar_t(1), false),
                                             typename Welford<scalar_t>::acc_t{});
  });
  return out;
}

Tensor largest_at(const Tensor& x, int64_t dim) {
  Tensor out = at::native::create_reduction_result(x, dim, false, at::kLong);
  auto iter =
      at::native::make_reduction("largest_at", out, x, dim, false, x.scalar_type(), at::kLong);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "largest_at", [&] {
    gpu_reduce_kernel<scalar_t, int64_t>(
        iter, at::native::ArgMaxOps<scalar_t>{},
        thrust::pair<scalar_t, int64_t>(-std::numeric_limits<scalar_t>::infinity(), 0));
  });
  return out;
}

// A sum per row by block_reduce.cuh, 128 threads a row.
template <typename scalar_t>
__global__ void row_sums_kernel(const scalar_t* in, scalar_t* out, int64_t columns) {
  __shared__ scalar_t shared[32];
  scalar_t sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    sum += in[blockIdx.x * columns + i];
  }
  sum = at::native::cuda_utils::BlockReduceSum(sum, shared);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = sum;
  }
}

Tensor row_sums(const Tensor& x_) {
  const Tensor x = x_.contiguous();
  Tensor out = at::empty({x.size(0)}, x.options());
  const c10::cuda::CUDAGuard guard(x.device());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_sums", [&] {
    row_sums_kernel<scalar_t><<<x.size(0), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

// The same of one block, which goes on with it.
__global__ void shared_total_kernel(const float* in, float* out) {
  __shared__ float shared[32];
  __shared__ float total;
  const float sum = at::native::cuda_utils::BlockReduceSum(in[threadIdx.x], shared);
  if (threadIdx.x == 0) {
    total = sum;
  }
  __syncthreads();
  out[threadIdx.x] = total;
}

Tensor shared_total(const Tensor& x) {
  Tensor out = at::empty_like(x);
  shared_total_kernel<<<1, x.numel(), 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// By PersistentSoftmax.cuh, whose launches the host sizes by the warps that kernels are made for.
Tensor row_softmax(const Tensor& x_) {
  const Tensor x = x_.contiguous();
  Tensor out = at::empty_like(x);
  const c10::cuda::CUDAGuard guard(x.device());
  dispatch_softmax_forward<float, float, float, false, false>(
      out.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.size(1), x.size(1), x.size(0));
  return out;
}

// ---- kernels of one's own ----

// The lanes that are at most the thread's own, for one block.
__global__ void lane_masks_kernel(int64_t* out) { out[threadIdx.x] = at::cuda::getLaneMaskLe(); }

Tensor lane_masks(const Tensor& like) {
  Tensor out = at::empty({128}, like.options().dtype(at::kLong));
  lane_masks_kernel<<<1, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      out.mutable_data_ptr<int64_t>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

template <typename scalar_t, typename index_t>
C10_LAUNCH_BOUNDS_1(at::cuda::detail::CUDA_NUM_THREADS)
__global__ void threshold_kernel(at::cuda::detail::TensorInfo<const scalar_t, index_t> in,
                                 scalar_t* out, index_t count, scalar_t least) {
  CUDA_KERNEL_LOOP_TYPE(i, count, index_t) {
    const index_t at = at::cuda::detail::IndexToOffset<const scalar_t, index_t, -1>::get(i, in);
    out[i] = ::max(in.data[at], least);
  }
}

Tensor threshold(const Tensor& x, double least) {
  Tensor out = at::empty(x.sizes(), x.options(), at::MemoryFormat::Contiguous);
  if (x.numel() == 0) {
    return out;
  }
  const c10::cuda::CUDAGuard guard(x.device());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "threshold", [&] {
    const auto info = at::cuda::detail::getTensorInfo<const scalar_t, int64_t>(x);
    threshold_kernel<scalar_t, int64_t>
        <<<at::cuda::detail::GET_BLOCKS(x.numel()), at::cuda::detail::CUDA_NUM_THREADS, 0,
           at::cuda::getCurrentCUDAStream()>>>(info, out.mutable_data_ptr<scalar_t>(), x.numel(),
                                               static_cast<scalar_t>(least));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

// Counts into any dtype, with atomics; `fast` takes those for pairs of narrow numbers.
template <typename scalar_t>
__global__ void count_kernel(const int64_t* where, int64_t count, scalar_t* out, int64_t bins,
                             bool fast) {
  CUDA_KERNEL_LOOP(i, count) {
    CUDA_KERNEL_ASSERT(where[i] >= 0 && where[i] < bins);
    at::native::fastAtomicAdd(out, where[i], bins, scalar_t(1), fast);
  }
}

Tensor counts(const Tensor& where, int64_t bins, at::ScalarType dtype, bool fast) {
  Tensor out = at::zeros({bins}, where.options().dtype(dtype));
  const c10::cuda::OptionalCUDAGuard guard(where.device());
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "counts", [&] {
    count_kernel<scalar_t>
        <<<at::cuda::detail::GET_BLOCKS(where.numel()), at::cuda::detail::CUDA_NUM_THREADS, 0,
           at::cuda::getCurrentCUDAStream()>>>(where.const_data_ptr<int64_t>(), where.numel(),
                                               out.mutable_data_ptr<scalar_t>(), bins, fast);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

// Largest and product by atomics.
__global__ void extremes_kernel(const float* in, int64_t count, float* out) {
  CUDA_KERNEL_LOOP(i, count) {
    gpuAtomicMax(out, in[i]);
    gpuAtomicMin(out + 1, in[i]);
  }
}

Tensor extremes(const Tensor& x) {
  Tensor out =
      at::tensor({-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()})
          .to(x.device());
  extremes_kernel<<<at::cuda::detail::GET_BLOCKS(x.numel()), at::cuda::detail::CUDA_NUM_THREADS, 0,
                    at::cuda::getCurrentCUDAStream()>>>(x.const_data_ptr<float>(), x.numel(),
                                                        out.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// The k-th largest of a row by radix selection, one block a row.
template <typename scalar_t>
__global__ void kth_kernel(const scalar_t* in, int64_t columns, int64_t k, scalar_t* out) {
  // Releases differ in how wide the counts in shared memory are where the index is wider than int.
  __shared__ int shared[64];
  scalar_t found = 0;
  at::native::radixSelect<scalar_t, typename at::native::TopKTypeConfig<scalar_t>::RadixType, int>(
      in + blockIdx.x * columns, static_cast<int>(k), true, static_cast<int>(columns), 1, shared,
      &found);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = found;
  }
}

Tensor kth_largest(const Tensor& x, int64_t k) {
  Tensor out = at::empty({x.size(0)}, x.options());
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "kth_largest", [&] {
    kth_kernel<scalar_t><<<x.size(0), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.const_data_ptr<scalar_t>(), x.size(1), k, out.mutable_data_ptr<scalar_t>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

// Whole vectors of four, where the memory lies so.
__global__ void negate_kernel(const float* in, float* out, int64_t vectors) {
  using vector_t = at::native::memory::aligned_vector<float, 4>;
  CUDA_KERNEL_LOOP(i, vectors) {
    vector_t values = at::native::memory::load_vector<4>(in, i);
    for (float& value : values.val) {
      value = -value;
    }
    auto words = at::native::memory::ld_vec<16>(values.val);
    at::native::memory::st_vec<16>(out + 4 * i, words);
  }
}

Tensor negate_by_vectors(const Tensor& x) {
  TORCH_CHECK(x.is_contiguous() && x.numel() % 4 == 0 &&
              at::native::memory::can_vectorize_up_to<float>(static_cast<char*>(x.data_ptr())) >=
                  4);
  Tensor out = at::empty_like(x);
  negate_kernel<<<at::cuda::detail::GET_BLOCKS(x.numel() / 4), at::cuda::detail::CUDA_NUM_THREADS,
                  0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.numel() / 4);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// ---- random numbers ----

__global__ void words_kernel(at::PhiloxCudaState philox, int64_t* out, int64_t threads) {
  CUDA_KERNEL_LOOP(i, threads) {
    const auto [seed, offset] = at::cuda::philox::unpack(philox);
    curandStatePhilox4_32_10_t state;
    curand_init(seed, i, offset, &state);
    const uint4 words = curand4(&state);
    out[4 * i] = words.x;
    out[4 * i + 1] = words.y;
    out[4 * i + 2] = words.z;
    out[4 * i + 3] = words.w;
  }
}

Tensor random_words(const Tensor& like, int64_t threads, std::optional<at::Generator> generator) {
  auto* gen = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      generator, at::cuda::detail::getDefaultCUDAGenerator());
  at::PhiloxCudaState philox;
  {
    std::lock_guard<std::mutex> lock(gen->mutex_);
    philox = gen->philox_cuda_state(4);
  }
  Tensor out = at::empty({threads, 4}, like.options().dtype(at::kLong));
  words_kernel<<<at::cuda::detail::GET_BLOCKS(threads), at::cuda::detail::CUDA_NUM_THREADS, 0,
                 at::cuda::getCurrentCUDAStream()>>>(philox, out.mutable_data_ptr<int64_t>(),
                                                     threads);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// ---- what stands in for libc10_cuda ----

bool on_another_stream(const Tensor& x) {
  const auto stream = at::cuda::getStreamFromPool(false, x.device().index());
  const auto before = at::cuda::getCurrentCUDAStream();
  bool inside = false;
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    inside = at::cuda::getCurrentCUDAStream() == stream;
    void* memory = c10::cuda::CUDACachingAllocator::raw_alloc(256);
    C10_CUDA_CHECK(cudaMemsetAsync(memory, 0, 256, stream));
    c10::cuda::CUDACachingAllocator::raw_delete(memory);
    AT_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  const cudaDeviceProp* properties = at::cuda::getCurrentDeviceProperties();
  return inside && at::cuda::getCurrentCUDAStream() == before &&
         properties->multiProcessorCount > 0 && at::cuda::warp_size() == C10_WARP_SIZE &&
         c10::cuda::device_count() > 0;
}

}  // namespace
}  // namespace third_party

TORCH_LIBRARY(third_party, m) {
  m.def("scaled(Tensor x, float factor) -> Tensor", &third_party::scaled);
  m.def("signed_difference(Tensor a, Tensor b) -> Tensor", &third_party::signed_difference);
  m.def("opmath_product(Tensor a, Tensor b) -> Tensor", &third_party::opmath_product);
  m.def("split_parts(Tensor x) -> (Tensor, Tensor)", &third_party::split_parts);
  m.def("with_sign_of(Tensor magnitude, Tensor sign) -> Tensor", &third_party::with_sign_of);
  m.def("square_sum(Tensor x, int[] dims, bool keepdim) -> Tensor", &third_party::square_sum);
  m.def("all_of(Tensor x, int dim) -> Tensor", &third_party::all_of);
  m.def("variance(Tensor x, int[] dims) -> Tensor", &third_party::variance);
  m.def("largest_at(Tensor x, int dim) -> Tensor", &third_party::largest_at);
  m.def("row_sums(Tensor x) -> Tensor", &third_party::row_sums);
  m.def("shared_total(Tensor x) -> Tensor", &third_party::shared_total);
  m.def("row_softmax(Tensor x) -> Tensor", &third_party::row_softmax);
  m.def("lane_masks(Tensor like) -> Tensor", &third_party::lane_masks);
  m.def("threshold(Tensor x, float least) -> Tensor", &third_party::threshold);
  m.def("counts(Tensor where, int bins, ScalarType dtype, bool fast) -> Tensor",
        &third_party::counts);
  m.def("extremes(Tensor x) -> Tensor", &third_party::extremes);
  m.def("kth_largest(Tensor x, int k) -> Tensor", &third_party::kth_largest);
  m.def("negate_by_vectors(Tensor x) -> Tensor", &third_party::negate_by_vectors);
  m.def("random_words(Tensor like, int threads, Generator? generator) -> Tensor",
        &third_party::random_words);
  m.def("on_another_stream(Tensor x) -> bool", &third_party::on_another_stream);
}
