#include "kernels/mudnn/Triangle.h"

#include "kernels/mudnn/Operands.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

namespace at::musa {

// muDNN has no triangle class. One row of column numbers and one column of row numbers make the
// mask, once for all matrices of the batch; SELECT does the rest.
void CopyTriangle(Triangle triangle, const Tensor& self, int64_t diagonal, const Tensor& out) {
  if (out.numel() == 0) return;
  const auto options = self.options().dtype(kLong);
  const Tensor columns = at::arange(self.size(-1), options);
  // Row r keeps the columns up to, or from, r + diagonal.
  const Tensor edges = at::arange(diagonal, diagonal + self.size(-2), options).unsqueeze(-1);
  const Tensor keep = triangle == Triangle::Lower ? columns.le(edges) : columns.ge(edges);
  const Tensor zero = at::scalar_tensor(0, TensorOptions(self.scalar_type()).device(kCPU));
  if (out.scalar_type() == self.scalar_type()) {
    at::where_out(const_cast<Tensor&>(out), keep, self, zero);
  } else {
    out.copy_(at::where(keep, self, zero));
  }
}

}  // namespace at::musa
