#include "kernels/mudnn/Layout.h"
#include "kernels/mudnn/Operands.h"
#include "torch_musa/csrc/aten/EmptyTensor.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/elu_native.h>
#include <torch_musa/ops/gelu_native.h>
#include <torch_musa/ops/hardsigmoid_native.h>
#include <torch_musa/ops/hardswish_native.h>
#include <torch_musa/ops/leaky_relu_native.h>
#include <torch_musa/ops/mish_native.h>
#include <torch_musa/ops/relu_native.h>
#include <torch_musa/ops/silu_native.h>
#include <torch_musa/ops/softplus_native.h>

#include <ATen/native/Gelu.h>
#include <ATen/ops/where.h>

namespace at::musa {
namespace {

// An unstructured activation: `out` may be undefined, in which case the iterator makes it.
Tensor activate(Tensor& out, const Tensor& self, UnaryMode mode, const char* name) {
  // The iterator would ask the dispatcher for the memory.
  if (!out.defined() && self.is_contiguous()) out = empty_musa(self.sizes(), self.options());
  auto iter = TensorIterator::unary_op(out, self);
  const c10::musa::MUSAGuard guard(iter.device(0));
  RunUnary(iter, mode, {name});
  return iter.output();
}

void check_relu(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() != kBool, "Boolean inputs not supported for relu");
}

}  // namespace

Tensor Relu(const Tensor& self) {
  check_relu(self);
  Tensor out;
  return activate(out, self, UnaryMode::RELU, "relu");
}

Tensor& Relu_(Tensor& self) {
  check_relu(self);
  activate(self, self, UnaryMode::RELU, "relu");
  return self;
}

Tensor Hardswish(const Tensor& self) {
  Tensor out;
  return activate(out, self, UnaryMode::HARDSWISH, "hardswish_cpu");
}

Tensor& Hardswish_(Tensor& self) {
  activate(self, self, UnaryMode::HARDSWISH, "hardswish_cpu");
  return self;
}

Tensor& HardswishOut(const Tensor& self, Tensor& out) {
  activate(out, self, UnaryMode::HARDSWISH, "hardswish_cpu");
  return out;
}

TORCH_IMPL_FUNC(MusaGelu)
(const Tensor& /*self*/, std::string_view approximate, const Tensor& /*out*/) {
  const bool tanh = native::get_gelutype_enum(approximate) == native::GeluType::Tanh;
  RunUnary(*this, tanh ? UnaryMode::GELU_TANH : UnaryMode::GELU, {"GeluKernelImpl"});
}

TORCH_IMPL_FUNC(MusaSilu)(const Tensor& self, const Tensor& out) {
  if (isComplexType(common_dtype())) {
    out.copy_(self.sigmoid().mul_(self));
    return;
  }
  RunUnary(*this, UnaryMode::SILU, {"silu_cpu"});
}

TORCH_IMPL_FUNC(MusaMish)(const Tensor& /*self*/, const Tensor& /*out*/) {
  RunUnary(*this, UnaryMode::MISH, {"mish_cpu"});
}

TORCH_IMPL_FUNC(MusaHardsigmoid)(const Tensor& /*self*/, const Tensor& /*out*/) {
  // relu6(x + 3) / 6; muDNN's alpha and beta are 0 until set.
  RunUnary(*this, UnaryMode::HARDSIGMOID,
           {.name = "hardsigmoid_cpu", .alpha = Scalar(1.0 / 6.0), .beta = Scalar(0.5)});
}

TORCH_IMPL_FUNC(MusaLeakyRelu)
(const Tensor& /*self*/, const Scalar& negative_slope, const Tensor& /*out*/) {
  RunUnary(*this, UnaryMode::LEAKY_RELU, {.name = "leaky_relu_cpu", .alpha = negative_slope});
}

TORCH_IMPL_FUNC(MusaSoftplus)
(const Tensor& /*self*/, const Scalar& beta, const Scalar& threshold, const Tensor& /*out*/) {
  RunUnary(*this, UnaryMode::SOFTPLUS, {.name = "softplus_cpu", .alpha = beta, .beta = threshold});
}

TORCH_IMPL_FUNC(MusaElu)
(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
 const Tensor& out) {
  if (scale.equal(1) && input_scale.equal(1)) {
    return RunUnary(*this, UnaryMode::ELU, {.name = "elu_cpu", .alpha = alpha});
  }
  // muDNN's ELU has neither scale (selu) nor input_scale (celu).
  CheckFloatingType(common_dtype(), "elu_cpu");
  const Tensor negative = self.mul(input_scale).expm1_().mul_(alpha);
  out.copy_(at::where(self.gt(0), self, negative).mul_(scale));
}

}  // namespace at::musa
