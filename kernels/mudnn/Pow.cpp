#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"

#include <torch_musa/ops/pow_native.h>

#include <ATen/ScalarOps.h>
#include <ATen/ops/pow.h>

namespace at::musa {

TORCH_IMPL_FUNC(MusaPowTensorTensor)
(const Tensor& /*base*/, const Tensor& /*exponent*/, const Tensor& /*out*/) {
  if (isComplexType(common_dtype())) return pow_kernel(*this);
  RunBinary(*this, BinaryMode::POW, {.name = "pow"});
}

TORCH_IMPL_FUNC(MusaPowTensorScalar)
(const Tensor& base, const Scalar& exponent, const Tensor& out) {
  // The two exponents that hold for every base, bools and NaN included.
  if (exponent.equal(0) || exponent.equal(false)) {
    out.fill_(1);
  } else if (exponent.equal(1) || exponent.equal(true)) {
    out.copy_(base);
  } else if (isComplexType(common_dtype())) {
    at::pow_out(const_cast<Tensor&>(out), base, native::wrapped_scalar_tensor(exponent));
  } else {
    RunUnary(*this, UnaryMode::POW, {.name = "pow", .alpha = exponent});
  }
}

TORCH_IMPL_FUNC(MusaPowScalar)(const Scalar& base, const Tensor& exponent, const Tensor& out) {
  if (base.equal(1) || base.equal(true)) {
    out.fill_(1);
  } else {
    at::pow_out(const_cast<Tensor&>(out), native::wrapped_scalar_tensor(base), exponent);
  }
}

}  // namespace at::musa
