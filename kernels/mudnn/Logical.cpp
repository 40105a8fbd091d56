#include "kernels/mudnn/Operands.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/logical_and_native.h>
#include <torch_musa/ops/logical_not_native.h>
#include <torch_musa/ops/logical_or_native.h>
#include <torch_musa/ops/logical_xor_native.h>

#include <ATen/ops/empty.h>

namespace at::musa {
namespace {

// muDNN's LOGICAL_* read BOOL; other dtypes are converted by their truth value.
Tensor& logical(const Tensor& self, const Tensor& other, Tensor& out, BinaryMode mode,
                const char* name) {
  auto iter = TensorIterator::comparison_op(out, self, other);
  const c10::musa::MUSAGuard guard(iter.device(0));
  RunBinary(iter, mode, {.name = name, .compute = kBool, .result = kBool});
  return out;
}

// Upstream's functional forms make their result where `self` is, and so refuse a CPU scalar there
// beside a tensor of the device, which every other binary operator takes. (The gradient of pow by
// its exponent has one where the base is such a scalar.)
Tensor logical(const Tensor& self, const Tensor& other, BinaryMode mode, const char* name) {
  const Device home = self.is_cpu() ? other.device() : self.device();
  Tensor out = at::empty({0}, TensorOptions(kBool).device(home));
  return logical(self, other, out, mode, name);
}

}  // namespace

Tensor LogicalAnd(const Tensor& self, const Tensor& other) {
  return logical(self, other, BinaryMode::LOGICAL_AND, "logical_and");
}

Tensor LogicalOr(const Tensor& self, const Tensor& other) {
  return logical(self, other, BinaryMode::LOGICAL_OR, "logical_or");
}

Tensor LogicalXor(const Tensor& self, const Tensor& other) {
  return logical(self, other, BinaryMode::LOGICAL_XOR, "logical_xor");
}

Tensor& LogicalAndOut(const Tensor& self, const Tensor& other, Tensor& out) {
  return logical(self, other, out, BinaryMode::LOGICAL_AND, "logical_and");
}

Tensor& LogicalOrOut(const Tensor& self, const Tensor& other, Tensor& out) {
  return logical(self, other, out, BinaryMode::LOGICAL_OR, "logical_or");
}

Tensor& LogicalXorOut(const Tensor& self, const Tensor& other, Tensor& out) {
  return logical(self, other, out, BinaryMode::LOGICAL_XOR, "logical_xor");
}

Tensor& LogicalNotOut(const Tensor& self, Tensor& out) {
  // x == 0 in the operand's own dtype; complex numbers first become their truth value.
  auto iter = TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(out)
                  .add_owned_const_input(self.is_complex() ? self.to(kBool) : self)
                  .build();
  const c10::musa::MUSAGuard guard(iter.device(0));
  const ScalarType dtype = iter.dtype(1);
  RunUnary(iter, UnaryMode::EQ,
           {.name = "logical_not",
            .alpha = Scalar(0),
            .compute = dtype == kBool ? kByte : dtype,
            .result = kBool});
  return out;
}

}  // namespace at::musa
