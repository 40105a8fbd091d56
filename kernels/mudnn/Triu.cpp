#include "kernels/mudnn/Triangle.h"

#include <torch_musa/ops/triu_native.h>

#include <algorithm>

namespace at::musa {

// A meta function of our own: it hands the kernel a diagonal inside [-rows, columns]. Beyond those
// every diagonal keeps all or nothing alike, and inside the kernel's `row + diagonal` cannot
// overflow.
TORCH_PRECOMPUTE_META_FUNC(triu)(const Tensor& self, int64_t diagonal) {
  TORCH_CHECK(self.dim() >= 2, "triu: input tensor must have at least 2 dimensions");
  set_output_raw_strided(0, self.sizes(), {}, self.options());
  TORCH_INTERNAL_ASSERT(outputs_declared == 1);
  const int64_t var = std::clamp(diagonal, -self.size(-2), self.size(-1));
  return TORCH_PRECOMPUTE_STRUCT(triu)().set_var(var);
}

TORCH_IMPL_FUNC(MusaTriu)(const Tensor& self, int64_t var, const Tensor& result) {
  CopyTriangle(Triangle::Upper, self, var, result);
}

}  // namespace at::musa
