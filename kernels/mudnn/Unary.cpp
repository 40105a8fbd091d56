#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/abs_native.h>
#include <torch_musa/ops/ceil_native.h>
#include <torch_musa/ops/exp_native.h>
#include <torch_musa/ops/floor_native.h>
#include <torch_musa/ops/log_native.h>
#include <torch_musa/ops/neg_native.h>
#include <torch_musa/ops/reciprocal_native.h>
#include <torch_musa/ops/round_native.h>
#include <torch_musa/ops/rsqrt_native.h>
#include <torch_musa/ops/sigmoid_native.h>
#include <torch_musa/ops/sign_native.h>
#include <torch_musa/ops/sqrt_native.h>
#include <torch_musa/ops/tanh_native.h>

#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/view_as_real.h>

namespace at::musa {
namespace {

// Rounding an integer is the identity, which muDNN's rounding modes do not know.
void round_with(TensorIteratorBase& iter, UnaryMode mode, const char* name, const Tensor& self,
                const Tensor& out) {
  if (isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
    out.copy_(self);
  } else {
    RunUnary(iter, mode, {name});
  }
}

// A function of floating-point numbers, whose meta function promotes integers; complex ones, which
// muDNN has no types for, go to a kernel of our own.
void run_float(TensorIteratorBase& iter, UnaryMode mode, const char* name,
               void (*complex_kernel)(TensorIteratorBase&)) {
  if (isComplexType(iter.common_dtype())) {
    complex_kernel(iter);
  } else {
    RunUnary(iter, mode, {name});
  }
}

}  // namespace

TORCH_IMPL_FUNC(MusaExp)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::EXP, "exp", exp_kernel);
}

TORCH_IMPL_FUNC(MusaLog)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::LOG, "log", log_kernel);
}

TORCH_IMPL_FUNC(MusaReciprocal)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::RECIPROCAL, "reciprocal", reciprocal_kernel);
}

TORCH_IMPL_FUNC(MusaRsqrt)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::RSQRT, "rsqrt", rsqrt_kernel);
}

TORCH_IMPL_FUNC(MusaSqrt)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::SQRT, "sqrt", sqrt_kernel);
}

TORCH_IMPL_FUNC(MusaSigmoid)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::SIGMOID, "sigmoid", sigmoid_kernel);
}

TORCH_IMPL_FUNC(MusaTanh)(const Tensor& /*self*/, const Tensor& /*out*/) {
  run_float(*this, UnaryMode::TANH, "tanh", tanh_kernel);
}

TORCH_IMPL_FUNC(MusaCeil)(const Tensor& self, const Tensor& out) {
  round_with(*this, UnaryMode::CEIL, "ceil", self, out);
}

TORCH_IMPL_FUNC(MusaFloor)(const Tensor& self, const Tensor& out) {
  round_with(*this, UnaryMode::FLOOR, "floor", self, out);
}

TORCH_IMPL_FUNC(MusaRound)(const Tensor& self, const Tensor& out) {
  round_with(*this, UnaryMode::ROUND, "round", self, out);
}

TORCH_IMPL_FUNC(MusaSign)(const Tensor& self, const Tensor& out) {
  if (self.scalar_type() == kBool) {
    out.copy_(self);
  } else {
    RunUnary(*this, UnaryMode::SIGN, {"sign"});
  }
}

TORCH_IMPL_FUNC(MusaNeg)(const Tensor& self, const Tensor& out) {
  if (isComplexType(common_dtype())) {
    Tensor parts = at::view_as_real(out);
    at::neg_out(parts, at::view_as_real(self.to(out.scalar_type())));
  } else {
    // muDNN has no NEG; a product with -1 keeps the sign of zero, which 0 - x would lose.
    RunUnary(*this, UnaryMode::MUL, {.name = "neg", .alpha = Scalar(-1)});
  }
}

Tensor& AbsOut(const Tensor& self, Tensor& out) {
  if (self.is_complex()) {
    const Tensor parts = at::view_as_real(self);
    const Tensor magnitude = at::hypot(parts.select(-1, 0), parts.select(-1, 1));
    TORCH_CHECK(canCast(magnitude.scalar_type(), out.scalar_type()), "result type ",
                magnitude.scalar_type(), " can't be cast to the desired output type ",
                out.scalar_type());
    native::resize_output(out, self.sizes());
    return out.copy_(magnitude);
  }
  auto iter = TensorIterator::unary_op(out, self);
  const c10::musa::MUSAGuard guard(iter.device(0));
  RunUnary(iter, UnaryMode::ABS, {"abs"});
  return out;
}

}  // namespace at::musa

namespace at::native {

// round.decimals with no decimals, which upstream's kernel takes to this stub.
static void musa_round_kernel(TensorIteratorBase& iter) {
  at::musa::RunUnary(iter, at::musa::UnaryMode::ROUND, {"round"});
}

REGISTER_MUSA_DISPATCH(round_stub, &musa_round_kernel)

}  // namespace at::native
