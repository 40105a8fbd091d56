#pragma once

// How the kernels that work along one dimension (cat, softmax, cumsum, sort, index_select ...) show
// an operand of any rank to muDNN: dense, as {outer, size, inner}, or {outer, size} for the last
// dimension.

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "kernels/mudnn/Operands.h"

namespace at::musa {

/// Where the dimension stands in the descriptors below.
constexpr int kAlongAxis = 1;

/// `tensor`, which is dense, around `dim`, with elements of `dtype`, one of the same size. A
/// dimension of a rank-0 tensor counts one element.
inline muTensor DescribeAlong(const Tensor& tensor, int64_t dim, ScalarType dtype) {
  DimArray shape{1, 1, 1};
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    shape[d < dim ? 0 : (d == dim ? 1 : 2)] *= tensor.size(d);
  }
  // The last dimension stays the last: libraries have their fastest kernels for it.
  if (shape[2] == 1) shape.pop_back();
  return MakeContiguousMUTensor(tensor.const_data_ptr(), dtype, shape);
}

inline muTensor DescribeAlong(const Tensor& tensor, int64_t dim) {
  return DescribeAlong(tensor, dim, tensor.scalar_type());
}

}  // namespace at::musa
