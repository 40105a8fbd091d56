#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"

#include <torch_musa/ops/eq_native.h>
#include <torch_musa/ops/ge_native.h>
#include <torch_musa/ops/gt_native.h>
#include <torch_musa/ops/le_native.h>
#include <torch_musa/ops/lt_native.h>
#include <torch_musa/ops/ne_native.h>

namespace at::musa {
namespace {

void compare(TensorIteratorBase& iter, BinaryMode mode, const char* name) {
  RunBinary(iter, mode, {.name = name, .compute = BoolAsByte(iter), .result = kBool});
}

void equal(TensorIteratorBase& iter) {
  if (isComplexType(iter.common_dtype())) return eq_kernel(iter);
  compare(iter, BinaryMode::EQ, "eq");
}

void not_equal(TensorIteratorBase& iter) {
  if (isComplexType(iter.common_dtype())) return ne_kernel(iter);
  compare(iter, BinaryMode::NE, "ne");
}

}  // namespace

// The meta function of a .Scalar overload has put the scalar into the iterator as a CPU tensor, so
// both overloads of an operator run the same way.

TORCH_IMPL_FUNC(MusaEqTensor)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) { equal(*this); }

TORCH_IMPL_FUNC(MusaEqScalar)
(const Tensor& /*self*/, const Scalar& /*other*/, const Tensor& /*out*/) { equal(*this); }

TORCH_IMPL_FUNC(MusaNeTensor)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) { not_equal(*this); }

TORCH_IMPL_FUNC(MusaNeScalar)
(const Tensor& /*self*/, const Scalar& /*other*/, const Tensor& /*out*/) { not_equal(*this); }

TORCH_IMPL_FUNC(MusaLtTensor)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::LT, "lt");
}

TORCH_IMPL_FUNC(MusaLtScalar)
(const Tensor& /*self*/, const Scalar& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::LT, "lt");
}

TORCH_IMPL_FUNC(MusaLeTensor)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::LE, "le");
}

TORCH_IMPL_FUNC(MusaLeScalar)
(const Tensor& /*self*/, const Scalar& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::LE, "le");
}

TORCH_IMPL_FUNC(MusaGtTensor)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::GT, "gt");
}

TORCH_IMPL_FUNC(MusaGtScalar)
(const Tensor& /*self*/, const Scalar& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::GT, "gt");
}

TORCH_IMPL_FUNC(MusaGeTensor)
(const Tensor& /*self*/, const Tensor& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::GE, "ge");
}

TORCH_IMPL_FUNC(MusaGeScalar)
(const Tensor& /*self*/, const Scalar& /*other*/, const Tensor& /*out*/) {
  compare(*this, BinaryMode::GE, "ge");
}

}  // namespace at::musa
