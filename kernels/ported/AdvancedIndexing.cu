// x[i, j] and x[i, j] = v, where i and j are integer tensors that broadcast together.
//
// PyTorch hands over an iterator whose indexed operand has stride 0 in the indexed dimensions, and
// the sizes and strides (in bytes) that those had: the indices' values, times these strides, are
// what is missing from its offset.
#include <ATen/Context.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/detail/IntegerDivider.cuh>
#include <ATen/native/IndexKernel.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>

#include <limits>
#include <tuple>
#include <vector>

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
  cuda::detail::IntDivider<uint32_t> shape[kMaxDims];
  int64_t strides[kMaxDims][kFirstIndex + kMaxIndices];
  int64_t indexed_sizes[kMaxIndices];
  int64_t indexed_strides[kMaxIndices];

  // Where an element of the iteration lies in output and input. With the number of indices known to
  // the compiler (0: it is not) the offsets stay in registers.
  template <int kIndices = 0>
  __host__ __device__ void locate(int64_t element, char*& out, char*& in) const {
    auto i = static_cast<uint32_t>(element);
    const int count = kIndices ? kIndices : indices;
    int64_t offsets[kFirstIndex + (kIndices ? kIndices : kMaxIndices)] = {};
    const int operands = kFirstIndex + count;
    for (int dim = 0; dim < dims; ++dim) {
      const uint32_t rest = dim + 1 == dims ? 0 : shape[dim].div(i);
      const int64_t position = i - rest * shape[dim].divisor;
      for (int arg = 0; arg < operands; ++arg) {
        offsets[arg] += position * strides[dim][arg];
      }
      i = rest;
    }
    int64_t picked = 0;
    for (int k = 0; k < count; ++k) {
      int64_t index =
          *reinterpret_cast<const int64_t*>(data[kFirstIndex + k] + offsets[kFirstIndex + k]);
      const int64_t size = indexed_sizes[k];
      KERNEL_CHECK_INDEX(index >= -size && index < size, "index ", index,
                         " is out of bounds for dimension ", k, " with size ", size);
      if (index < 0) {
        index += size;
      }
      picked += index * indexed_strides[k];
    }
    out = data[0] + offsets[0] + (indexed == 0 ? picked : 0);
    in = data[1] + offsets[1] + (indexed == 1 ? picked : 0);
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
  TORCH_CHECK(iter.numel() <= std::numeric_limits<int32_t>::max(), "indexing ", iter.numel(),
              " elements at once is not implemented on this device");
  for (int dim = 0; dim < indexing.dims; ++dim) {
    indexing.shape[dim] =
        cuda::detail::IntDivider<uint32_t>(static_cast<uint32_t>(iter.shape()[dim]));
  }
  std::copy(sizes.begin(), sizes.end(), indexing.indexed_sizes);
  std::copy(strides.begin(), strides.end(), indexing.indexed_strides);
  return indexing;
}

template <int kIndices>
void move_located(TensorIteratorBase& iter, const Indexing& indexing) {
  DISPATCH_WORD(iter.element_size(0), [&] {
    for_each_index(iter.device(0), iter.numel(), [indexing] GPU_LAMBDA(int64_t i) {
      char* out;
      char* in;
      indexing.locate<kIndices>(i, out, in);
      *reinterpret_cast<word_t*>(out) = *reinterpret_cast<const word_t*>(in);
    });
  });
}

void move_indexed(TensorIteratorBase& iter, const Indexing& indexing) {
  switch (indexing.indices) {
    case 1:
      return move_located<1>(iter, indexing);
    case 2:
      return move_located<2>(iter, indexing);
    default:
      return move_located<0>(iter, indexing);
  }
}

void index_kernel(TensorIteratorBase& iter, IntArrayRef sizes, IntArrayRef strides) {
  if (iter.numel() != 0) {
    move_indexed(iter, describe(iter, sizes, strides, /*indexed=*/1));
  }
}

void add_indexed(TensorIteratorBase& iter, const Indexing& indexing) {
  AT_DISPATCH_V2(iter.dtype(), "index_put_cuda", AT_WRAP([&] {
                   for_each_index(iter.device(0), iter.numel(), [indexing] __device__(int64_t i) {
                     char* out;
                     char* in;
                     indexing.locate<>(i, out, in);
                     gpuAtomicAddNoReturn(reinterpret_cast<scalar_t*>(out),
                                          *reinterpret_cast<const scalar_t*>(in));
                   });
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), kBool, kHalf, kBFloat16, kComplexHalf);
}

void index_put_kernel(TensorIterator& iter, IntArrayRef sizes, IntArrayRef strides,
                      bool accumulate) {
  if (iter.numel() == 0) {
    return;
  }
  const Indexing indexing = describe(iter, sizes, strides, /*indexed=*/0);
  if (accumulate) {
    add_indexed(iter, indexing);
  } else {
    move_indexed(iter, indexing);
  }
}

// ---- in a fixed order
// -------------------------------------------------------------------------------------------- For
// torch.use_deterministic_algorithms: several values may go to one element, and their order decides
// what the sum rounds to, or which value stays. Sorted by target, stably, the values of one element
// stand side by side in the order of the iteration, and one thread takes them all.

void put_in_order(TensorIteratorBase& iter, const Indexing& indexing, bool accumulate) {
  const int64_t count = iter.numel();
  const auto options = TensorOptions().dtype(kLong).device(iter.device(0));
  const Tensor targets = at::empty({count}, options);
  const Tensor sources = at::empty({count}, options);
  auto* target = targets.mutable_data_ptr<int64_t>();
  auto* source = sources.mutable_data_ptr<int64_t>();
  char* out = indexing.data[0];
  char* in = indexing.data[1];
  for_each_index(iter.device(0), count, [=] GPU_LAMBDA(int64_t i) {
    char* to;
    char* from;
    indexing.locate<>(i, to, from);
    target[i] = to - out;
    source[i] = from - in;
  });
  const auto [sorted, order] = at::sort(targets, /*stable=*/std::optional<bool>(true), /*dim=*/0);
  const auto* to = sorted.const_data_ptr<int64_t>();
  const auto* which = order.const_data_ptr<int64_t>();
  if (!accumulate) {
    DISPATCH_WORD(iter.element_size(0), [&] {
      for_each_index(iter.device(0), count, [=] GPU_LAMBDA(int64_t i) {
        if (i + 1 == count || to[i + 1] != to[i]) {
          *reinterpret_cast<word_t*>(out + to[i]) =
              *reinterpret_cast<const word_t*>(in + source[which[i]]);
        }
      });
    });
    return;
  }
  AT_DISPATCH_V2(iter.dtype(), "index_put_cuda", AT_WRAP([&] {
                   for_each_index(iter.device(0), count, [=] GPU_LAMBDA(int64_t i) {
                     if (i > 0 && to[i - 1] == to[i]) {
                       return;
                     }
                     auto* element = reinterpret_cast<scalar_t*>(out + to[i]);
                     for (int64_t j = i; j < count && to[j] == to[i]; ++j) {
                       *element += *reinterpret_cast<const scalar_t*>(in + source[which[j]]);
                     }
                   });
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), kBool, kHalf, kBFloat16, kComplexHalf);
}

// The stub's name is upstream's; it gets the tensors before they are made into an iterator, so that
// is done here as upstream does it for index_put_stub.
void index_put_with_sort_kernel(Tensor& self, const c10::List<std::optional<Tensor>>& given,
                                const Tensor& value, bool accumulate, bool /*unsafe*/) {
  std::vector<Tensor> indices = expandTensors(self, given);
  indices = expand_outplace(indices);
  indices.resize(self.dim());
  Tensor target = self;
  if (!hasContiguousSubspace(indices)) {
    std::tie(target, indices) = transposeToFront(target, indices);
  }
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<int64_t> indexed_sizes;
  std::vector<int64_t> indexed_strides;
  IntArrayRef index_shape;
  int64_t dims_after = 0;
  for (int64_t dim = 0; dim < target.dim(); ++dim) {
    if (!indices[dim].defined()) {
      shape.push_back(target.size(dim));
      strides.push_back(target.stride(dim));
      dims_after += indexed_sizes.empty() ? 0 : 1;
      continue;
    }
    if (indexed_sizes.empty()) {
      // The dimensions of the indices stand where the first indexed dimension was.
      index_shape = indices[dim].sizes();
      shape.insert(shape.end(), index_shape.begin(), index_shape.end());
      strides.insert(strides.end(), index_shape.size(), 0);
    }
    TORCH_CHECK_INDEX(target.size(dim) != 0 || indices[dim].numel() == 0,
                      "index is out of bounds for dimension with size 0");
    indexed_sizes.push_back(target.size(dim));
    indexed_strides.push_back(target.stride(dim) * static_cast<int64_t>(target.element_size()));
  }
  TORCH_CHECK(is_expandable_to(value.sizes(), shape), "shape mismatch: value tensor of shape ",
              value.sizes(), " cannot be broadcast to indexing result of shape ",
              IntArrayRef(shape));
  TORCH_CHECK(value.scalar_type() == self.scalar_type(),
              "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", value.scalar_type(),
              " for the source.");
  TensorIteratorConfig config;
  config.set_check_mem_overlap(false).resize_outputs(false).check_all_same_dtype(false);
  config.add_owned_output(target.as_strided(shape, strides));
  config.add_owned_const_input(value);
  for (const Tensor& index : indices) {
    if (index.defined()) {
      std::vector<int64_t> aligned(index_shape.begin(), index_shape.end());
      aligned.insert(aligned.end(), dims_after, 1);
      config.add_owned_const_input(index.to(self.device(), kLong).reshape(aligned));
    }
  }
  auto iter = config.build();
  if (iter.numel() == 0) {
    return;
  }
  const Indexing indexing = describe(iter, indexed_sizes, indexed_strides, /*indexed=*/0);
  if (globalContext().deterministicAlgorithms()) {
    put_in_order(iter, indexing, accumulate);
  } else {
    add_indexed(iter, indexing);
  }
}

}  // namespace

REGISTER_DISPATCH(index_stub, &index_kernel)
REGISTER_DISPATCH(index_put_stub, &index_put_kernel)
REGISTER_DISPATCH(index_put_with_sort_stub, &index_put_with_sort_kernel)

}  // namespace at::native
