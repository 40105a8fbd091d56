#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/add_native.h>
#include <torch_musa/ops/sub_native.h>

#include <ATen/native/BinaryOps.h>

namespace at::musa {
namespace {

// One of the pair add / sub: the mode without alpha, the one with it, and the Unary mode for a
// scalar right operand.
struct AddLike {
  Elementwise op;  // made once: clearing one takes as long as describing an operand
  BinaryMode plain;
  BinaryMode scaled;
  UnaryMode scalar;
};
constinit const AddLike kAdd{
    {.name = "add"}, BinaryMode::ADD, BinaryMode::ADD_ALPHA, UnaryMode::ADD};
constinit const AddLike kSub{
    {.name = "sub"}, BinaryMode::SUB, BinaryMode::SUB_ALPHA, UnaryMode::SUB};

Scalar product(const Scalar& a, const Scalar& b, ScalarType dtype) {
  return isIntegralType(dtype, /*includeBool=*/true) ? Scalar(a.to<int64_t>() * b.to<int64_t>())
                                                     : Scalar(a.to<double>() * b.to<double>());
}

// Of two tensors whose types differ and whose common type is float: cast while they are added.
bool is_mixed(const TensorIteratorBase& iter) {
  const ScalarType left = iter.dtype(1), right = iter.dtype(2);
  return left != right && iter.common_dtype() == kFloat && isFloatingType(left) &&
         isFloatingType(right) && !iter.is_cpu_scalar(1) && !iter.is_cpu_scalar(2);
}

void run(TensorIteratorBase& iter, const Scalar& alpha, const AddLike& like) {
  const ScalarType dtype = iter.common_dtype();
  const auto factor = [&] { return &like == &kSub ? -alpha : alpha; };
  if (isComplexType(dtype)) return add_kernel(iter, factor());
  if (is_mixed(iter)) return mixed_add_kernel(iter, factor());
  if (dtype == kBool) {
    // Over {0, 1} with saturation, self + alpha * other is an OR; sub_check has refused the
    // subtraction.
    if (alpha.to<bool>()) return RunBinary(iter, BinaryMode::LOGICAL_OR, like.op);
    // self alone: a copy, which broadcasts, as a Unary does not
    iter.output().copy_(iter.input(0));
    return;
  }
  if (alpha.equal(1)) return RunBinary(iter, like.plain, like.op);
  if (iter.is_cpu_scalar(2)) {
    return RunUnary(iter, like.scalar,
                    {.name = like.op.name, .alpha = product(alpha, iter.tensor(2).item(), dtype)});
  }
  RunBinary(iter, like.scaled, {.name = like.op.name, .alpha = alpha});
}

}  // namespace

TORCH_IMPL_FUNC(MusaAdd)
(const Tensor& /*self*/, const Tensor& /*other*/, const Scalar& alpha, const Tensor& /*out*/) {
  run(*this, alpha, kAdd);
}

// sub is the family's unstructured member: upstream's group is turned off in the operator list, so
// these three check, guard, and build the iterator themselves.
Tensor& SubTensorOut(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  native::sub_check(self, other);
  auto iter = TensorIterator::borrowing_binary_op(out, self, other);
  const c10::musa::MUSAGuard guard(iter.device(0));
  native::alpha_check(iter.common_dtype(), alpha);
  run(iter, alpha, kSub);
  return out;
}

Tensor SubTensor(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  native::sub_check(self, other);
  Tensor out;
  auto iter = TensorIterator::borrowing_binary_op(out, self, other);
  const c10::musa::MUSAGuard guard(iter.device(0));
  native::alpha_check(iter.common_dtype(), alpha);
  run(iter, alpha, kSub);
  return iter.output();
}

Tensor& SubTensor_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  return SubTensorOut(self, other, alpha, self);
}

}  // namespace at::musa
