#include "kernels/mudnn/Operands.h"
#include "torch_musa/csrc/core/MUSACapture.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/nonzero_native.h>
#include <torch_musa/ops/nonzero_static_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

namespace at::musa {

Tensor Nonzero(const Tensor& self) {
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  const auto options = self.options().dtype(kLong);
  if (self.numel() == 0) return at::empty({0, self.dim()}, options);
  // What muDNN has no type for is judged by its truth value.
  const Tensor in = (self.is_complex() ? self.to(kBool) : self).contiguous();
  if (self.dim() == 0) {
    // No coordinates, only whether there is an element.
    return at::empty({in.item().to<bool>() ? 1 : 0, 0}, options);
  }
  TORCH_CHECK(self.dim() <= kMaxMudnnRank, "nonzero is not supported for tensors with more than ",
              kMaxMudnnRank, " dimensions");
  c10::musa::check_may_wait();
  const Tensor coordinates = at::empty({in.numel(), in.dim()}, options);
  muTensor mu_in = CreateMUTensor(in);
  muTensor mu_out = CreateMUTensor(coordinates);
  ::musa::dnn::Nonzero op;
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_in, InternalMemAlloc), "nonzero");
  std::vector<int64_t> found;
  CHECK_MUDNN_STATUS(mu_out.GetNdInfo(found), "GetNdInfo");
  // The buffer had to have room for every element; a copy gives the rest back. Column by column, as
  // on the CPU: sparse tensors take a column for their indices, and it has to be dense.
  const Tensor result = coordinates.narrow(0, 0, found[0]);
  return result.t().clone(MemoryFormat::Contiguous).t();
}

Tensor& NonzeroOut(const Tensor& self, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  const Tensor result = Nonzero(self);
  if (native::resize_output(out, result.sizes()) && out.numel() > 0) {
    out.as_strided_(result.sizes(), result.strides());
  }
  return out.copy_(result);
}

Tensor& NonzeroStaticOut(const Tensor& self, int64_t size, int64_t fill_value, Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TORCH_CHECK(out.scalar_type() == kLong,
              "nonzero_static: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  native::resize_output(out, {size, self.dim()});
  const Tensor found = Nonzero(self);
  const int64_t rows = std::min(size, found.size(0));
  out.narrow(0, 0, rows).copy_(found.narrow(0, 0, rows));
  out.narrow(0, rows, size - rows).fill_(fill_value);
  return out;
}

Tensor NonzeroStatic(const Tensor& self, int64_t size, int64_t fill_value) {
  Tensor out = at::empty({0}, self.options().dtype(kLong));
  return NonzeroStaticOut(self, size, fill_value, out);
}

}  // namespace at::musa
