// tril_indices and triu_indices: the coordinates of a triangle's elements, row by row.
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>
#include <torch_musa/ops/tril_indices_native.h>
#include <torch_musa/ops/triu_indices_native.h>

#include "kernels/ported/EachElement.cuh"

namespace at::musa {
namespace {

__host__ __device__ inline int64_t clamped(int64_t x, int64_t high) {
  return x < 0 ? 0 : (x < high ? x : high);
}

// sum of clamp(j, 0, high) over j <= t
__host__ __device__ inline int64_t clamped_sum(int64_t t, int64_t high) {
  if (t <= 0) {
    return 0;
  }
  return t <= high ? t * (t + 1) / 2 : high * (high + 1) / 2 + (t - high) * high;
}

// The columns that row i of the triangle holds are [begin(i), end(i)); before(i) elements lie in
// the rows above it.
struct Lower {
  int64_t columns, offset;
  __host__ __device__ int64_t begin(int64_t) const { return 0; }
  __host__ __device__ int64_t end(int64_t i) const { return clamped(i + 1 + offset, columns); }
  __host__ __device__ int64_t before(int64_t i) const {
    return clamped_sum(i + offset, columns) - clamped_sum(offset, columns);
  }
};

struct Upper {
  int64_t columns, offset;
  __host__ __device__ int64_t begin(int64_t i) const { return clamped(i + offset, columns); }
  __host__ __device__ int64_t end(int64_t) const { return columns; }
  __host__ __device__ int64_t before(int64_t i) const {
    return i * columns - (clamped_sum(i - 1 + offset, columns) - clamped_sum(offset - 1, columns));
  }
};

template <typename triangle_t>
Tensor indices_of(int64_t rows, const triangle_t& triangle, const TensorOptions& options) {
  const int64_t size = triangle.before(rows);
  Tensor out = at::empty({2, size}, options);
  auto* data = static_cast<char*>(out.mutable_data_ptr());
  const ScalarType dtype = out.scalar_type();
  const auto item = static_cast<int64_t>(out.element_size());
  native::for_each_index(out.device(), size == 0 ? 0 : rows, [=] GPU_LAMBDA(int64_t row) {
    int64_t at = triangle.before(row);
    for (int64_t column = triangle.begin(row); column < triangle.end(row); ++column, ++at) {
      native::store_element(data + at * item, dtype, row);
      native::store_element(data + (size + at) * item, dtype, column);
    }
  });
  return out;
}

TensorOptions options_of(std::optional<ScalarType> dtype, std::optional<Layout> layout,
                         std::optional<Device> device, std::optional<bool> pin_memory) {
  return TensorOptions()
      .dtype(dtype.value_or(kLong))
      .layout(layout)
      .device(device.value_or(Device(DeviceType::CUDA)))
      .pinned_memory(pin_memory);
}

}  // namespace

Tensor TrilIndices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                   std::optional<Layout> layout, std::optional<Device> device,
                   std::optional<bool> pin_memory) {
  native::check_args(row, col, layout);
  return indices_of(row, Lower{col, offset}, options_of(dtype, layout, device, pin_memory));
}

Tensor TriuIndices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                   std::optional<Layout> layout, std::optional<Device> device,
                   std::optional<bool> pin_memory) {
  native::check_args(row, col, layout);
  return indices_of(row, Upper{col, offset}, options_of(dtype, layout, device, pin_memory));
}

}  // namespace at::musa
