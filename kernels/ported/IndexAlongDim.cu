// Writes to the slices of one dimension that an index vector names: index_fill, index_copy,
// index_add and index_reduce; and take and put, which index a tensor as if it were flat.
#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <ATen/native/IndexKernel.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/ops/scatter_reduce.h>
#include <torch_musa/ops/index_add_native.h>
#include <torch_musa/ops/index_reduce_native.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/KernelCheck.cuh"

namespace at::native {
namespace {

template <int N>
OffsetCalculator<N> byte_offsets(const TensorIteratorBase& iter) {
  TORCH_CHECK(iter.can_use_32bit_indexing(), "indexing over ", iter.numel(),
              " elements is not implemented on this device");
  return make_offset_calculator<N>(iter);
}

// One element of any dtype.
struct Element {
  alignas(16) char bytes[16]{};
};

char* data_of(const TensorIteratorBase& iter, int arg) {
  return static_cast<char*>(iter.data_ptr(arg));
}

// ---- one dimension
// -----------------------------------------------------------------------------------------------
// Operand 0 is the indexed tensor with stride 0 along the dimension (`stride`, in elements, is what
// it had there); operand 1 is the index, broadcast.

void index_fill_kernel(TensorIterator& iter, int64_t dim, int64_t size, int64_t stride,
                       const Scalar& source) {
  if (iter.numel() == 0) {
    return;
  }
  const auto offsets = byte_offsets<2>(iter);
  char* self = data_of(iter, 0);
  const char* index = data_of(iter, 1);
  Element value;
  AT_DISPATCH_V2(iter.dtype(), "index_fill_cuda", AT_WRAP([&] {
                   const auto typed = source.to<scalar_t>();
                   std::memcpy(value.bytes, &typed, sizeof(typed));
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), kBool, kHalf, kBFloat16, kComplexHalf);
  DISPATCH_WORD(iter.element_size(0), [&] {
    word_t word;
    std::memcpy(&word, value.bytes, sizeof(word));
    for_each_index(iter.device(0), iter.numel(), [=] GPU_LAMBDA(int64_t i) {
      const auto at = offsets.get(static_cast<uint32_t>(i));
      int64_t slice = *reinterpret_cast<const int64_t*>(index + at[1]);
      KERNEL_CHECK_INDEX(slice >= -size && slice < size, "index ", slice,
                         " is out of bounds for dimension ", dim, " with size ", size);
      slice = slice < 0 ? slice + size : slice;
      reinterpret_cast<word_t*>(self + at[0])[slice * stride] = word;
    });
  });
}

void index_copy_kernel(TensorIterator& iter, int64_t dim, int64_t size, int64_t stride) {
  if (iter.numel() == 0) {
    return;
  }
  const auto offsets = byte_offsets<3>(iter);
  char* self = data_of(iter, 0);
  const char* index = data_of(iter, 1);
  const char* source = data_of(iter, 2);
  DISPATCH_WORD(iter.element_size(0), [&] {
    for_each_index(iter.device(0), iter.numel(), [=] GPU_LAMBDA(int64_t i) {
      const auto at = offsets.get(static_cast<uint32_t>(i));
      const int64_t slice = *reinterpret_cast<const int64_t*>(index + at[1]);
      KERNEL_CHECK_INDEX(slice >= 0 && slice < size, "index_copy_(): index ", slice,
                         " is out of bounds for dimension ", dim, " with size ", size);
      reinterpret_cast<word_t*>(self + at[0])[slice * stride] =
          *reinterpret_cast<const word_t*>(source + at[2]);
    });
  });
}

template <typename scalar_t, typename factor_t>
__host__ __device__ inline scalar_t scaled(scalar_t value, factor_t factor) {
  if constexpr (std::is_same_v<scalar_t, bool>) {
    return value && factor;
  } else {
    return static_cast<scalar_t>(static_cast<factor_t>(value) * factor);
  }
}

// body(i) for i in [0, count) by no more threads than PyTorch's own index_add has at a time. With
// one for each element an H200 makes 46 billion atomic additions a second, PyTorch's 130.
constexpr int kAddingThreads = 128;
constexpr int kAddingBlocks = 8;  // of a multiprocessor
// On fewer (the host's stand-in has two) no additions queue up, and neighbours in memory should be
// neighbours in time.
constexpr int kManyMultiprocessors = 16;

template <typename func_t>
__global__ void adding_kernel(int64_t count, const func_t __grid_constant__ body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    body(i);
  }
}

template <typename func_t>
void for_each_addition(Device device, int64_t count, const func_t& body) {
  const c10::cuda::CUDAGuard guard(device);
  const int64_t multiprocessors = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  if (multiprocessors < kManyMultiprocessors) {
    for_each_index(device, count, body);
    return;
  }
  const int64_t blocks =
      std::min(kAddingBlocks * multiprocessors, (count + kAddingThreads - 1) / kAddingThreads);
  adding_kernel<<<static_cast<unsigned int>(blocks), kAddingThreads, 0,
                  at::cuda::getCurrentCUDAStream()>>>(count, body);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// As index_copy, adding alpha * source. Several sources may go to one slice, so the additions are
// atomic.
void index_add_kernel(TensorIterator& iter, int64_t dim, int64_t size, int64_t stride,
                      const Scalar& alpha, bool is_vector) {
  if (iter.numel() == 0) {
    return;
  }
  const auto offsets = byte_offsets<3>(iter);
  char* self = data_of(iter, 0);
  const char* index = data_of(iter, 1);
  const char* source = data_of(iter, 2);
  AT_DISPATCH_V2(
      iter.dtype(0), "index_add", AT_WRAP([&] {
        const auto factor = alpha.to<at::opmath_type<scalar_t>>();
        const bool int_index = iter.dtype(1) == kInt;
        for_each_addition(iter.device(0), iter.numel(), [=] __device__(int64_t i) {
          const auto at = offsets.get(static_cast<uint32_t>(i));
          const int64_t slice = int_index ? *reinterpret_cast<const int32_t*>(index + at[1])
                                          : *reinterpret_cast<const int64_t*>(index + at[1]);
          const bool inside = slice >= 0 && slice < size;
          // The CPU's messages, and its kinds of error.
          KERNEL_CHECK_INDEX(inside || !is_vector, "index out of range in self");
          KERNEL_CHECK(inside, "index ", slice, " is out of bounds for dimension ", dim,
                       " with size ", size);
          const auto value = *reinterpret_cast<const scalar_t*>(source + at[2]);
          gpuAtomicAddNoReturn(reinterpret_cast<scalar_t*>(self + at[0]) + slice * stride,
                               scaled(value, factor));
        });
      }),
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), kBool, kHalf, kBFloat16, kComplexHalf);
}

// ---- the whole tensor, as if flat
// --------------------------------------------------------------------------------

// Byte offset of element i, counted row by row, of a tensor of any strides.
OffsetCalculator<1> flat_offsets(const TensorBase& tensor) {
  const auto dims = tensor.dim();
  std::vector<int64_t> sizes(dims);
  std::vector<int64_t> strides(dims);
  for (int64_t i = 0; i < dims; ++i) {
    sizes[i] = tensor.size(dims - 1 - i);
    strides[i] = tensor.stride(dims - 1 - i) * static_cast<int64_t>(tensor.element_size());
  }
  const std::array<const int64_t*, 1> pointers{strides.data()};
  return OffsetCalculator<1>(static_cast<int>(dims), sizes.data(), pointers.data());
}

__host__ __device__ inline int64_t checked_flat_index(int64_t index, int64_t numel) {
  KERNEL_CHECK_INDEX(index >= -numel && index < numel, "out of range: tried to access index ",
                     index, " on a tensor of ", numel, " elements.");
  return index < 0 ? index + numel : index;
}

// Operand 0 is the output, operand 1 the index.
void take_kernel(TensorIterator& iter, const TensorBase& input) {
  if (iter.numel() == 0) {
    return;
  }
  const auto offsets = byte_offsets<2>(iter);
  const auto flat = flat_offsets(input);
  const int64_t numel = input.numel();
  char* out = data_of(iter, 0);
  const char* index = data_of(iter, 1);
  const auto* source = static_cast<const char*>(input.const_data_ptr());
  DISPATCH_WORD(iter.element_size(0), [&] {
    for_each_index(iter.device(0), iter.numel(), [=] GPU_LAMBDA(int64_t i) {
      const auto at = offsets.get(static_cast<uint32_t>(i));
      const int64_t element =
          checked_flat_index(*reinterpret_cast<const int64_t*>(index + at[1]), numel);
      *reinterpret_cast<word_t*>(out + at[0]) =
          *reinterpret_cast<const word_t*>(source + flat.get(static_cast<uint32_t>(element))[0]);
    });
  });
}

// Operand 0 is the source, operand 1 the index.
void put_kernel(TensorIterator& iter, const TensorBase& self, bool accumulate) {
  if (iter.numel() == 0) {
    return;
  }
  const auto offsets = byte_offsets<2>(iter);
  const auto flat = flat_offsets(self);
  const int64_t numel = self.numel();
  const char* source = data_of(iter, 0);
  const char* index = data_of(iter, 1);
  auto* out = static_cast<char*>(self.mutable_data_ptr());
  if (!accumulate) {
    DISPATCH_WORD(self.element_size(), [&] {
      for_each_index(self.device(), iter.numel(), [=] GPU_LAMBDA(int64_t i) {
        const auto at = offsets.get(static_cast<uint32_t>(i));
        const int64_t element =
            checked_flat_index(*reinterpret_cast<const int64_t*>(index + at[1]), numel);
        *reinterpret_cast<word_t*>(out + flat.get(static_cast<uint32_t>(element))[0]) =
            *reinterpret_cast<const word_t*>(source + at[0]);
      });
    });
    return;
  }
  AT_DISPATCH_V2(
      self.scalar_type(), "put_cuda", AT_WRAP([&] {
        for_each_index(self.device(), iter.numel(), [=] __device__(int64_t i) {
          const auto at = offsets.get(static_cast<uint32_t>(i));
          const int64_t element =
              checked_flat_index(*reinterpret_cast<const int64_t*>(index + at[1]), numel);
          gpuAtomicAddNoReturn(
              reinterpret_cast<scalar_t*>(out + flat.get(static_cast<uint32_t>(element))[0]),
              *reinterpret_cast<const scalar_t*>(source + at[0]));
        });
      }),
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), kBool, kHalf, kBFloat16, kComplexHalf);
}

// The output's strides may be negative, which is how flip is told apart from a copy.
void flip_kernel(TensorIterator& iter, bool /*quantized*/) {
  if (iter.numel() == 0) {
    return;
  }
  TORCH_CHECK(iter.can_use_32bit_indexing(), "flip of ", iter.numel(),
              " elements is not implemented on this device");
  const std::array<const int64_t*, 2> strides{iter.strides(0).data(), iter.strides(1).data()};
  const OffsetCalculator<2, uint32_t, /*signed_strides=*/true> offsets(
      iter.ndim(), iter.shape().data(), strides.data());
  char* out = data_of(iter, 0);
  const char* in = data_of(iter, 1);
  DISPATCH_WORD(iter.element_size(0), [&] {
    for_each_index(iter.device(0), iter.numel(), [=] GPU_LAMBDA(int64_t i) {
      const auto at = offsets.get(static_cast<uint32_t>(i));
      *reinterpret_cast<word_t*>(out + at[0]) = *reinterpret_cast<const word_t*>(in + at[1]);
    });
  });
}

}  // namespace

REGISTER_DISPATCH(index_fill_stub, &index_fill_kernel)
REGISTER_DISPATCH(index_copy_stub, &index_copy_kernel)
REGISTER_DISPATCH(take_stub, &take_kernel)
REGISTER_DISPATCH(put_stub, &put_kernel)
REGISTER_DISPATCH(flip_stub, &flip_kernel)

}  // namespace at::native

namespace at::musa {

TORCH_IMPL_FUNC(MusaIndexAdd)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha,
 const Tensor& out) {
  if (!out.is_same(self)) {
    out.copy_(self);
  }
  // A 0-dim tensor counts as a vector of one element.
  const Tensor target = out.dim() == 0 ? out.unsqueeze(0) : out;
  const Tensor values = source.dim() == 0 ? source.unsqueeze(0) : source;
  dim = maybe_wrap_dim(dim, target.dim());
  std::vector<int64_t> sizes(values.sizes().begin(), values.sizes().end());
  std::vector<int64_t> strides(target.strides().begin(), target.strides().end());
  std::vector<int64_t> index_sizes(values.dim(), 1);
  strides[dim] = 0;
  index_sizes[dim] = values.size(dim);
  const Tensor restrided = target.as_strided(sizes, strides);
  const Tensor broadcast = index.reshape(index_sizes).expand(sizes);
  auto iter = TensorIteratorConfig()
                  .set_check_mem_overlap(false)  // the restrided output overlaps itself on purpose
                  .check_all_same_dtype(false)
                  .resize_outputs(false)
                  .add_output(restrided)
                  .add_const_input(broadcast)
                  .add_const_input(values)
                  .build();
  native::index_add_kernel(iter, dim, target.size(dim), target.stride(dim), alpha,
                           /*is_vector=*/out.dim() <= 1);
}

// What scatter_reduce (ScatterReduce.cu) does with the index repeated over the other dimensions.
TORCH_IMPL_FUNC(MusaIndexReduce)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
 c10::string_view reduce, bool include_self, const Tensor& out) {
  TORCH_WARN_ONCE("index_reduce() is in beta and the API may change at any time.");
  std::vector<int64_t> index_sizes(source.dim(), 1);
  if (source.dim() > 0) {
    index_sizes[dim] = source.size(dim);
  }
  const Tensor broadcast = index.reshape(index_sizes).expand(source.sizes());
  Tensor result = out;
  at::scatter_reduce_out(result, self, dim, broadcast, source, reduce, include_self);
}

}  // namespace at::musa
