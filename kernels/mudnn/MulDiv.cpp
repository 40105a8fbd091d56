#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"

#include <torch_musa/ops/div_native.h>
#include <torch_musa/ops/floor_divide_native.h>
#include <torch_musa/ops/fmod_native.h>
#include <torch_musa/ops/mul_native.h>
#include <torch_musa/ops/remainder_native.h>

#include <ATen/ops/div.h>

namespace at::musa {
namespace {

constinit const Elementwise kMul{.name = "mul"};  // made once, as AddSub.cpp's

void true_divide(TensorIteratorBase& iter) {
  if (isComplexType(iter.common_dtype())) return div_true_kernel(iter);
  RunBinary(iter, BinaryMode::TRUEDIV, {.name = "div_true"});
}

}  // namespace

TORCH_IMPL_FUNC(MusaMul)(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  if (isComplexType(common_dtype())) return mul_kernel(*this);
  if (common_dtype() != kBool) return RunBinary(*this, BinaryMode::MUL, kMul);
  RunBinary(*this, BinaryMode::MUL, {.name = "mul", .compute = kByte});
}

TORCH_IMPL_FUNC(MusaDiv)(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  true_divide(*this);
}

// The meta function has refused other rounding modes and promoted integers where there is none.
TORCH_IMPL_FUNC(MusaDivMode)
(const Tensor& /*self*/, const Tensor& /*other*/, std::optional<std::string_view> rounding_mode,
 const Tensor& /*out*/) {
  if (!rounding_mode) return true_divide(*this);
  if (*rounding_mode == "trunc") {
    return RunBinary(*this, BinaryMode::TRUNCATEDIV, {.name = "div_trunc"});
  }
  RunBinary(*this, BinaryMode::FLOORDIV, {.name = "div_floor"});
}

TORCH_IMPL_FUNC(MusaRemainder)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  RunBinary(*this, BinaryMode::FLOORMOD, {.name = "remainder"});
}

TORCH_IMPL_FUNC(MusaFmod)(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  RunBinary(*this, BinaryMode::TRUNCATEMOD, {.name = "fmod"});
}

Tensor FloorDivide(const Tensor& self, const Tensor& other) {
  return at::div(self, other, "floor");
}

Tensor& FloorDivide_(Tensor& self, const Tensor& other) { return self.div_(other, "floor"); }

Tensor& FloorDivideOut(const Tensor& self, const Tensor& other, Tensor& out) {
  return at::div_out(out, self, other, "floor");
}

}  // namespace at::musa
