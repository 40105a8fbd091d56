#include "kernels/mudnn/Operands.h"

#include <torch_musa/ops/maximum_native.h>
#include <torch_musa/ops/minimum_native.h>

namespace at::musa {

TORCH_IMPL_FUNC(MusaMaximum)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  RunBinary(*this, BinaryMode::MAX, {.name = "maximum", .compute = BoolAsByte(*this)});
}

TORCH_IMPL_FUNC(MusaMinimum)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  RunBinary(*this, BinaryMode::MIN, {.name = "minimum", .compute = BoolAsByte(*this)});
}

}  // namespace at::musa
