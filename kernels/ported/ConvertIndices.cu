// Row numbers to compressed row offsets and back: what COO and CSR tensors turn into each other by.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <torch_musa/ops/_convert_indices_from_coo_to_csr_native.h>
#include <torch_musa/ops/_convert_indices_from_csr_to_coo_native.h>

#include "kernels/ported/EachElement.cuh"

namespace at::musa {
namespace {

/// How many of the `count` sorted numbers are below `bound`.
template <typename index_t>
__host__ __device__ inline int64_t count_below(const index_t* sorted, int64_t count,
                                               int64_t bound) {
  int64_t low = 0;
  for (int64_t high = count; low < high;) {
    const int64_t middle = low + (high - low) / 2;
    if (sorted[middle] < bound) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// `out` may have any strides: where it is not contiguous, `fill` writes to a copy.
template <typename fill_t>
void fill_contiguous(const Tensor& out, const fill_t& fill) {
  const Tensor dense = out.contiguous();
  fill(dense);
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

}  // namespace

TORCH_IMPL_FUNC(MusaCooToCsr)
(const Tensor& self, int64_t size, bool out_int32, const Tensor& out) {
  const Tensor rows = self.contiguous();
  fill_contiguous(out, [&](const Tensor& offsets) {
    AT_DISPATCH_INDEX_TYPES(rows.scalar_type(), "convert_indices_from_coo_to_csr_cuda", [&] {
      const auto* sorted = rows.const_data_ptr<index_t>();
      const int64_t count = rows.numel();
      auto* data = static_cast<char*>(offsets.mutable_data_ptr());
      const ScalarType dtype = offsets.scalar_type();
      const auto item = static_cast<int64_t>(offsets.element_size());
      native::for_each_index(offsets.device(), size + 1, [=] GPU_LAMBDA(int64_t row) {
        native::store_element(data + row * item, dtype, count_below(sorted, count, row));
      });
    });
  });
}

TORCH_IMPL_FUNC(MusaCsrToCoo)
(const Tensor& crow_indices, const Tensor& col_indices, bool out_int32, bool transpose,
 const Tensor& out) {
  // Batches stand before the two coordinates of a matrix: [batch..., row, column].
  const int64_t batch_dims = crow_indices.dim() - 1;
  const int64_t nnz = col_indices.size(-1), rows = crow_indices.size(-1) - 1;
  const int64_t total = col_indices.numel();
  if (total == 0) {
    return;
  }
  const Tensor offsets = crow_indices.contiguous();
  const int64_t row_dim = batch_dims + (transpose ? 1 : 0),
                col_dim = batch_dims + (transpose ? 0 : 1);
  DimVector batches(crow_indices.sizes().begin(), crow_indices.sizes().begin() + batch_dims);
  out.select(0, col_dim).copy_(col_indices.reshape({-1}));
  fill_contiguous(out.select(0, row_dim), [&](const Tensor& numbers) {
    AT_DISPATCH_INDEX_TYPES(offsets.scalar_type(), "convert_indices_from_csr_to_coo_cuda", [&] {
      const auto* first = offsets.const_data_ptr<index_t>();
      auto* data = static_cast<char*>(numbers.mutable_data_ptr());
      const ScalarType dtype = numbers.scalar_type();
      const auto item = static_cast<int64_t>(numbers.element_size());
      native::for_each_index(numbers.device(), total / nnz * rows, [=] GPU_LAMBDA(int64_t i) {
        const int64_t batch = i / rows, row = i % rows;
        const index_t* offset = first + batch * (rows + 1) + row;
        for (int64_t entry = offset[0]; entry < offset[1]; ++entry) {
          native::store_element(data + (batch * nnz + entry) * item, dtype, row);
        }
      });
    });
  });
  int64_t repeat = total;
  for (int64_t dim = 0; dim < batch_dims; ++dim) {
    const int64_t size = batches[dim];
    repeat /= size;
    Tensor numbers = out.select(0, dim);
    const Tensor steps = at::arange(size, numbers.options());
    numbers.copy_(steps.unsqueeze(1)
                      .expand({size, repeat})
                      .unsqueeze(0)
                      .expand({total / (size * repeat), size, repeat})
                      .reshape({-1}));
  }
}

}  // namespace at::musa
