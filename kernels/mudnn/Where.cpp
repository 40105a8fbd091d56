#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/where_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>

namespace at::musa {
namespace {

Device where_device(const Tensor& condition, const Tensor& self, const Tensor& other) {
  if (!condition.is_cpu()) return condition.device();
  return self.is_cpu() ? other.device() : self.device();
}

}  // namespace

Tensor& WhereSelfOut(const Tensor& condition, const Tensor& self, const Tensor& other,
                     Tensor& out) {
  const ScalarType result = at::result_type(self, other);
  TORCH_CHECK(out.scalar_type() == result, "Expected out type to be ", result, " but got ",
              out.scalar_type());
  TORCH_CHECK(condition.scalar_type() == kBool || condition.scalar_type() == kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              condition.scalar_type());
  if (condition.scalar_type() == kByte) {
    TORCH_WARN_ONCE(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed "
        "in a future version of PyTorch. Use a boolean condition instead.");
  }
  const c10::musa::OptionalMUSAGuard guard(device_of(out));
  // A 0-dim condition on the CPU only selects; the iterator takes CPU scalars for self and other by
  // itself.
  const Tensor mask =
      condition.is_cpu() && condition.dim() == 0 ? condition.to(out.device()) : condition;
  auto iter = TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .allow_cpu_scalars(true)
                  .add_output(out)
                  .add_owned_const_input(mask)
                  .add_owned_const_input(self.scalar_type() == result ? self : self.to(result))
                  .add_owned_const_input(other.scalar_type() == result ? other : other.to(result))
                  .build();
  if (isComplexType(result)) {
    where_kernel(iter);
  } else {
    RunTernary(iter, TernaryMode::SELECT,
               {.name = "where_cpu", .compute = result == kBool ? kByte : result});
  }
  return out;
}

Tensor WhereSelf(const Tensor& condition, const Tensor& self, const Tensor& other) {
  Tensor out = at::empty(
      {0},
      TensorOptions(at::result_type(self, other)).device(where_device(condition, self, other)));
  return WhereSelfOut(condition, self, other, out);
}

}  // namespace at::musa
