// x[i, j] and x[i, j] = v, where i and j are integer tensors that broadcast together.
//
// PyTorch hands over an iterator whose indexed operand has stride 0 in the indexed dimensions, and
// the sizes and strides (in bytes) that those had: the indices' values, times these strides, are
// what is missing from its offset.
#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/native/IndexKernel.h>
#include <ATen/native/TensorIterator.h>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/KernelCheck.cuh"

namespace at::native {
namespace {

// Fits the 4 KB that the arguments of a kernel may take.
constexpr int kMaxDims = 16;
constexpr int kMaxIndices = 8;
constexpr int kFirstIndex =
    2;  // operand 0 is the output, operand 1 the input, the index tensors follow

struct Indexing {
  int dims;
  int indices;
  int indexed;  // the operand that the indices apply to
  char* data[kFirstIndex + kMaxIndices];
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims][kFirstIndex + kMaxIndices];
  int64_t indexed_sizes[kMaxIndices];
  int64_t indexed_strides[kMaxIndices];

  // Where element i of the iteration lies in output and input.
  __host__ __device__ void locate(int64_t i, char*& out, char*& in) const {
    int64_t offsets[kFirstIndex + kMaxIndices] = {};
    const int operands = kFirstIndex + indices;
    for (int dim = 0; dim < dims; ++dim) {
      const int64_t rest = dim + 1 == dims ? 0 : i / shape[dim];
      const int64_t position = i - rest * shape[dim];
      for (int arg = 0; arg < operands; ++arg) {
        offsets[arg] += position * strides[dim][arg];
      }
      i = rest;
    }
    for (int k = 0; k < indices; ++k) {
      int64_t index =
          *reinterpret_cast<const int64_t*>(data[kFirstIndex + k] + offsets[kFirstIndex + k]);
      const int64_t size = indexed_sizes[k];
      KERNEL_CHECK_INDEX(index >= -size && index < size, "index ", index,
                         " is out of bounds for dimension ", k, " with size ", size);
      if (index < 0) {
        index += size;
      }
      offsets[indexed] += index * indexed_strides[k];
    }
    out = data[0] + offsets[0];
    in = data[1] + offsets[1];
  }
};

Indexing describe(const TensorIteratorBase& iter, IntArrayRef sizes, IntArrayRef strides,
                  int indexed) {
  Indexing indexing{};
  indexing.dims = iter.ndim();
  indexing.indices = iter.ntensors() - kFirstIndex;
  indexing.indexed = indexed;
  TORCH_INTERNAL_ASSERT(static_cast<size_t>(indexing.indices) == sizes.size() &&
                        sizes.size() == strides.size());
  TORCH_CHECK(indexing.indices <= kMaxIndices, "indexing with more than ", kMaxIndices,
              " index tensors is not implemented on this device, got ", indexing.indices);
  TORCH_CHECK(indexing.dims <= kMaxDims, "indexing over more than ", kMaxDims,
              " separate dimensions is not implemented on this device, got ", indexing.dims);
  for (int arg = 0; arg < iter.ntensors(); ++arg) {
    indexing.data[arg] = static_cast<char*>(iter.data_ptr(arg));
    for (int dim = 0; dim < indexing.dims; ++dim) {
      indexing.strides[dim][arg] = iter.strides(arg)[dim];
    }
  }
  std::copy(iter.shape().begin(), iter.shape().end(), indexing.shape);
  std::copy(sizes.begin(), sizes.end(), indexing.indexed_sizes);
  std::copy(strides.begin(), strides.end(), indexing.indexed_strides);
  return indexing;
}

void move_indexed(TensorIteratorBase& iter, const Indexing& indexing) {
  dispatch_word(iter.element_size(0), [&](auto word) {
    using word_t = decltype(word);
    for_each_index(iter.device(0), iter.numel(), [indexing] GPU_LAMBDA(int64_t i) {
      char* out;
      char* in;
      indexing.locate(i, out, in);
      *reinterpret_cast<word_t*>(out) = *reinterpret_cast<const word_t*>(in);
    });
  });
}

void index_kernel(TensorIteratorBase& iter, IntArrayRef sizes, IntArrayRef strides) {
  move_indexed(iter, describe(iter, sizes, strides, /*indexed=*/1));
}

void index_put_kernel(TensorIterator& iter, IntArrayRef sizes, IntArrayRef strides,
                      bool accumulate) {
  const Indexing indexing = describe(iter, sizes, strides, /*indexed=*/0);
  if (!accumulate) {
    return move_indexed(iter, indexing);
  }
  AT_DISPATCH_V2(iter.dtype(), "index_put_cuda", AT_WRAP([&] {
                   for_each_index(iter.device(0), iter.numel(), [indexing] GPU_LAMBDA(int64_t i) {
                     char* out;
                     char* in;
                     indexing.locate(i, out, in);
                     gpuAtomicAddNoReturn(reinterpret_cast<scalar_t*>(out),
                                          *reinterpret_cast<const scalar_t*>(in));
                   });
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), kBool, kHalf, kBFloat16, kComplexHalf);
}

}  // namespace

REGISTER_DISPATCH(index_stub, &index_kernel)
REGISTER_DISPATCH(index_put_stub, &index_put_kernel)

}  // namespace at::native
