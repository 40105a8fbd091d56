#include "kernels/mudnn/Reduction.h"

#include <torch_musa/ops/linalg_vector_norm_native.h>

namespace at::musa {

TORCH_IMPL_FUNC(MusaVectorNorm)
(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool /*keepdim*/,
 std::optional<ScalarType> /*dtype*/, const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.zero_();  // the meta function has refused the orders that have no identity
    return;
  }
  // The norm of complex numbers is the norm of their magnitudes.
  Reduce({.name = "linalg_vector_norm", .mode = ReduceMode::NORM, .norm_order = ord.toDouble()},
         self.is_complex() ? self.abs() : self, dim, out.scalar_type(), out);
}

}  // namespace at::musa
