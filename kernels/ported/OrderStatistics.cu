// kthvalue, mode and the medians: muDNN sorts along the dimension, and a thread for each slice
// finds the place of the wanted element in it. NaN sorts behind everything.
#include <ATen/Dispatch.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sort.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch_musa/ops/kthvalue_native.h>
#include <torch_musa/ops/median_native.h>
#include <torch_musa/ops/nanmedian_native.h>

#include <limits>
#include <tuple>

#include "kernels/ported/EachElement.cuh"

namespace at::musa {
namespace {

// Where in a sorted slice its median is: the lower of the two middle elements. A NaN is the median
// of all slices that have one, unless they are to be left out.
struct Median {
  bool ignore_nan;

  template <typename T>
  __host__ __device__ int64_t operator()(const T* sorted, int64_t size) const {
    int64_t numbers = size;
    while (numbers > 0 && sorted[numbers - 1] != sorted[numbers - 1]) --numbers;
    if (numbers < size && (!ignore_nan || numbers == 0)) return numbers;
    return (numbers - 1) / 2;
  }
};

// Values of one slice with the places they come from, moved together.
template <typename T>
struct Slice {
  T* values;
  int64_t* places;

  __host__ __device__ void swap(int64_t i, int64_t j) const {
    const T value = values[i];
    values[i] = values[j];
    values[j] = value;
    const int64_t place = places[i];
    places[i] = places[j];
    places[j] = place;
  }

  __host__ __device__ static bool behind(T a, T b) { return (a != a && b == b) || a > b; }

  // Hoare's selection with the middle one of three as pivot (Press et al., Numerical Recipes,
  // "Selecting the Mth Largest"): then places[k] is that of the k-th element. Which one of several
  // equal elements comes there is open, and with the CPU's choice of pivots it is the CPU's.
  __host__ __device__ void select(int64_t size, int64_t k) const {
    int64_t low = 0, high = size - 1;
    while (high > low + 1) {
      swap(low + (high - low) / 2, low + 1);
      if (behind(values[low + 1], values[high])) swap(low + 1, high);
      if (behind(values[low], values[high])) swap(low, high);
      if (behind(values[low + 1], values[low])) swap(low + 1, low);
      const T pivot = values[low];
      int64_t up = low + 1, down = high;
      for (;;) {
        while (behind(pivot, values[++up])) {
        }
        while (behind(values[--down], pivot)) {
        }
        if (down < up) break;
        swap(up, down);
      }
      swap(low, down);
      if (down <= k) low = up;
      if (down >= k) high = down - 1;
    }
    if (high == low + 1 && behind(values[low], values[high])) swap(low, high);
  }
};

// Value and index of the median of every slice along the last dimension, in one row.
template <typename scalar_t>
void find_in_slices(const Tensor& slices, const Median& median, const Tensor& values,
                    const Tensor& indices) {
  const auto [sorted, order] = at::sort(slices, /*stable=*/true, /*dim=*/-1, /*descending=*/false);
  const Tensor dense = sorted.contiguous(), positions = order.contiguous();
  const int64_t size = dense.size(-1);
  const scalar_t* elements = dense.const_data_ptr<scalar_t>();
  const int64_t* places = positions.const_data_ptr<int64_t>();
  scalar_t* value = values.mutable_data_ptr<scalar_t>();
  int64_t* index = indices.mutable_data_ptr<int64_t>();
  native::for_each_index(slices.device(), values.numel(), [=] GPU_LAMBDA(int64_t slice) {
    const int64_t at = slice * size + median(elements + slice * size, size);
    value[slice] = elements[at];
    index[slice] = places[at];
  });
}

// The same for the k-th element.
template <typename scalar_t>
void find_in_slices(const Tensor& slices, int64_t k, const Tensor& values, const Tensor& indices) {
  const Tensor work = slices.clone(MemoryFormat::Contiguous);
  const Tensor positions = at::empty(slices.sizes(), indices.options());
  const int64_t size = work.size(-1);
  scalar_t* elements = work.mutable_data_ptr<scalar_t>();
  int64_t* places = positions.mutable_data_ptr<int64_t>();
  scalar_t* value = values.mutable_data_ptr<scalar_t>();
  int64_t* index = indices.mutable_data_ptr<int64_t>();
  native::for_each_index(slices.device(), values.numel(), [=] GPU_LAMBDA(int64_t slice) {
    const Slice<scalar_t> mine{elements + slice * size, places + slice * size};
    for (int64_t i = 0; i < size; ++i) mine.places[i] = i;
    mine.select(size, k);
    value[slice] = mine.values[k];
    index[slice] = mine.places[k];
  });
}

// Fills outputs that have their final shape.
template <typename statistic_t>
void find_along(const Tensor& self, int64_t dim, const statistic_t& statistic, const Tensor& values,
                const Tensor& indices) {
  if (self.numel() == 0) return;
  const Tensor slices = self.dim() == 0 ? self.reshape({1}) : self.movedim(dim, -1);
  const Tensor value = at::empty({values.numel()}, self.options());
  const Tensor index = at::empty({values.numel()}, self.options().dtype(kLong));
  if (self.scalar_type() == kBool) {  // one element
    find_in_slices<bool>(slices, statistic, value, index);
  } else {
    AT_DISPATCH_ALL_TYPES_AND2(kHalf, kBFloat16, self.scalar_type(), "order_statistic_cuda",
                               [&] { find_in_slices<scalar_t>(slices, statistic, value, index); });
  }
  values.copy_(value.view(values.sizes()));
  indices.copy_(index.view(indices.sizes()));
}

void check_orders(const Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex() && self.scalar_type() != kBool, '"', name,
                              "\" not implemented for '", toString(self.scalar_type()), "'");
}

DimVector shape_without(const Tensor& self, int64_t dim, bool keepdim) {
  DimVector shape(self.sizes());
  if (shape.empty()) return shape;
  if (keepdim) {
    shape[dim] = 1;
  } else {
    shape.erase(shape.begin() + dim);
  }
  return shape;
}

void check_outputs(const char* name, const Tensor& self, const Tensor& values,
                   const Tensor& indices) {
  TORCH_CHECK(values.device() == self.device() && indices.device() == self.device(), name,
              ": expected outputs on ", self.device(), ", got ", values.device(), " and ",
              indices.device());
  TORCH_CHECK(values.scalar_type() == self.scalar_type(), name, ": expected values of dtype ",
              self.scalar_type(), ", got ", values.scalar_type());
  TORCH_CHECK(indices.scalar_type() == kLong, name, ": expected indices of dtype Long, got ",
              indices.scalar_type());
}

template <typename statistic_t>
void reduce_to(const char* name, const Tensor& self, int64_t dim, bool keepdim,
               const statistic_t& statistic, const Tensor& values, const Tensor& indices) {
  check_outputs(name, self, values, indices);
  const DimVector shape = shape_without(self, dim, keepdim);
  native::resize_output(values, shape);
  native::resize_output(indices, shape);
  find_along(self, dim, statistic, values, indices);
}

void median_to(const char* name, const Tensor& self, int64_t dim, bool keepdim, bool ignore_nan,
               const Tensor& values, const Tensor& indices) {
  const c10::cuda::CUDAGuard guard(self.device());
  dim = maybe_wrap_dim(dim, self.dim());
  native::zero_numel_check_dims(self, dim, "median()");
  check_orders(self, name);
  reduce_to(name, self, dim, keepdim, Median{ignore_nan}, values, indices);
}

Tensor median_of_all(const char* name, const Tensor& self, bool ignore_nan) {
  const c10::cuda::CUDAGuard guard(self.device());
  if (self.numel() == 0) {
    return at::full({}, std::numeric_limits<float>::quiet_NaN(), self.options());
  }
  check_orders(self, name);
  const Tensor value = at::empty({}, self.options());
  const Tensor index = at::empty({}, self.options().dtype(kLong));
  find_along(self.reshape({-1}), 0, Median{ignore_nan}, value, index);
  return value;
}

}  // namespace

std::tuple<Tensor&, Tensor&> KthvalueOut(const Tensor& self, int64_t k, int64_t dim, bool keepdim,
                                         Tensor& values, Tensor& indices) {
  const c10::cuda::CUDAGuard guard(self.device());
  dim = maybe_wrap_dim(dim, self.dim());
  native::zero_numel_check_dims(self, dim, "kthvalue()");
  at::assert_no_overlap(self, values);
  const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ",
              dim);
  check_outputs("kthvalue", self, values, indices);
  if (self.dim() > 0) check_orders(self, "kthvalue_cpu");
  reduce_to("kthvalue", self, dim, keepdim, k - 1, values, indices);
  return {values, indices};
}

std::tuple<Tensor&, Tensor&> MedianOut(const Tensor& self, int64_t dim, bool keepdim,
                                       Tensor& values, Tensor& indices) {
  median_to("median_out", self, dim, keepdim, /*ignore_nan=*/false, values, indices);
  return {values, indices};
}

std::tuple<Tensor&, Tensor&> NanmedianOut(const Tensor& self, int64_t dim, bool keepdim,
                                          Tensor& values, Tensor& indices) {
  median_to("nanmedian_out", self, dim, keepdim, /*ignore_nan=*/true, values, indices);
  return {values, indices};
}

Tensor MedianOfAll(const Tensor& self) { return median_of_all("median_cpu", self, false); }

Tensor NanmedianOfAll(const Tensor& self) { return median_of_all("nanmedian_cpu", self, true); }

}  // namespace at::musa
