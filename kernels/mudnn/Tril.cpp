#include "kernels/mudnn/Triangle.h"

#include <torch_musa/ops/tril_native.h>

#include <algorithm>

namespace at::musa {

TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {
  // Diagonals outside [-rows, columns] keep all or nothing alike; inside, row + diagonal cannot
  // overflow.
  CopyTriangle(Triangle::Lower, self, std::clamp(k, -self.size(-2), self.size(-1)), result);
}

}  // namespace at::musa
