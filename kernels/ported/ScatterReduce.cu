// scatter and scatter_reduce with a reduction, hung on PyTorch's stubs. muDNN's Scatter only writes
// and adds.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <ATen/native/NonEmptyUtils.h>
#include <ATen/native/ReductionType.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/KernelCheck.cuh"

namespace at::native {
namespace {

struct Sum {
  template <typename T>
  __host__ __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a || b;
    } else {
      return a + b;
    }
  }
};

struct Product {
  template <typename T>
  __host__ __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a && b;
    } else {
      return a * b;
    }
  }
};

// NaN wins, on either side.
struct Largest {
  template <typename T>
  __host__ __device__ T operator()(T a, T b) const {
    return b != b || a < b ? b : a;
  }
};

struct Smallest {
  template <typename T>
  __host__ __device__ T operator()(T a, T b) const {
    return b != b || b < a ? b : a;
  }
};

// self[.., index[.., i, ..], ..] = combine(that, src[.., i, ..]). Two elements of the index meet in
// one element of self only if they lie in one column along `dim`: a thread a column needs no
// atomics and gives one result, run after run.
template <typename scalar_t, typename combine_t>
void combine_columns(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                     const combine_t& combine) {
  const int64_t rank = ensure_nonempty_dim(self.dim());
  std::array<c10::SmallVector<int64_t, 8>, 3> strides;
  c10::SmallVector<int64_t, 8> sizes;
  for (int64_t d = rank; d-- > 0;) {
    if (d == dim) continue;
    sizes.push_back(ensure_nonempty_size(index, d));
    strides[0].push_back(ensure_nonempty_stride(self, d));
    strides[1].push_back(ensure_nonempty_stride(index, d));
    strides[2].push_back(ensure_nonempty_stride(src, d));
  }
  const std::array<const int64_t*, 3> stride_data{strides[0].data(), strides[1].data(),
                                                  strides[2].data()};
  const OffsetCalculator<3, uint64_t> offsets(static_cast<int>(sizes.size()), sizes.data(),
                                              stride_data.data());
  const int64_t length = ensure_nonempty_size(index, dim);
  const int64_t size = ensure_nonempty_size(self, dim);
  const std::array<int64_t, 3> step{ensure_nonempty_stride(self, dim),
                                    ensure_nonempty_stride(index, dim),
                                    ensure_nonempty_stride(src, dim)};
  auto* out = self.mutable_data_ptr<scalar_t>();
  const auto* positions = index.const_data_ptr<int64_t>();
  const auto* values = src.const_data_ptr<scalar_t>();
  for_each_index(self.device(), index.numel() / length, [=] GPU_LAMBDA(int64_t column) {
    const auto start = offsets.get(static_cast<uint64_t>(column));
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = positions[start[1] + i * step[1]];
      KERNEL_CHECK(at >= 0 && at < size, "index ", at, " is out of bounds for dimension ", dim,
                   " with size ", size);
      scalar_t& target = out[start[0] + at * step[0]];
      target = combine(target, values[start[2] + i * step[2]]);
    }
  });
}

void reduce_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 ReductionType reduce) {
  if (index.numel() == 0) {
    return;
  }
  // int32 indices are as good to the meta function.
  const Tensor positions = index.to(kLong);
  if (reduce == ReductionType::MAX || reduce == ReductionType::MIN) {
    AT_DISPATCH_ALL_TYPES_AND(kBool, self.scalar_type(), "scatter_reduce_cuda", [&] {
      if (reduce == ReductionType::MAX) {
        combine_columns<scalar_t>(self, dim, positions, src, Largest{});
      } else {
        combine_columns<scalar_t>(self, dim, positions, src, Smallest{});
      }
    });
    return;
  }
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(kBool, self.scalar_type(), "scatter_reduce_cuda", [&] {
    if (reduce == ReductionType::PROD) {
      combine_columns<scalar_t>(self, dim, positions, src, Product{});
    } else {
      combine_columns<scalar_t>(self, dim, positions, src,
                                Sum{});  // the mean divides the sum, outside
    }
  });
}

void scatter_reduce_kernel(const Tensor& self, const int64_t dim, const Tensor& index,
                           const Tensor& src, const ReductionType& reduce) {
  if (isReducedFloatingType(self.scalar_type())) {
    // Accumulated in float, rounded once.
    const Tensor wide = self.to(kFloat);
    reduce_into(wide, dim, index, src.to(kFloat), reduce);
    self.copy_(wide);
  } else {
    reduce_into(self, dim, index, src, reduce);
  }
}

void scatter_scalar_reduce_kernel(const Tensor& self, const int64_t dim, const Tensor& index,
                                  const Scalar& value, const ReductionType& reduce) {
  const Tensor src = at::empty({}, self.options()).fill_(value);
  scatter_reduce_kernel(self, dim, index, src.expand(index.sizes()), reduce);
}

}  // namespace

REGISTER_DISPATCH(scatter_reduce_stub, &scatter_reduce_kernel)
REGISTER_DISPATCH(scatter_scalar_reduce_stub, &scatter_scalar_reduce_kernel)
REGISTER_DISPATCH(scatter_reduce_two_stub, &scatter_reduce_kernel)

}  // namespace at::native
