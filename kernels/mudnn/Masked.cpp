#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/core/MUSACapture.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/masked_fill_native.h>
#include <torch_musa/ops/masked_scatter_native.h>
#include <torch_musa/ops/masked_select_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/any.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

namespace at::musa {
namespace {

// self[mask] = value, for a value of self's dtype that is 0-dim, on the CPU or the device.
void select_into(const Tensor& self, const Tensor& mask, const Tensor& value) {
  auto iter = TensorIteratorConfig()
                  .set_check_mem_overlap(false)
                  .check_all_same_dtype(false)
                  .allow_cpu_scalars(true)
                  .resize_outputs(false)
                  .add_output(self)
                  .add_const_input(mask)
                  .add_const_input(value)
                  .add_const_input(self)
                  .build();
  const ScalarType dtype = self.scalar_type();
  if (isComplexType(dtype)) {
    where_kernel(iter);
  } else {
    RunTernary(iter, TernaryMode::SELECT,
               {.name = "masked_fill", .compute = dtype == kBool ? kByte : dtype});
  }
}

// All indices along a stride-0 dimension are the same element, which is filled where any of them
// is.
Tensor& fill_expanded(Tensor& self, const Tensor& mask, const Tensor& value) {
  DimVector repeated;
  Tensor once = self;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.stride(d) != 0 || self.size(d) < 2) continue;
    repeated.push_back(d);
    once = once.narrow(d, 0, 1);
  }
  once.masked_fill_(mask.expand(self.sizes()).any(repeated, /*keepdim=*/true), value);
  return self;
}

}  // namespace

Tensor& MaskedFillTensor_(Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  TORCH_CHECK(mask.scalar_type() == kBool,
              "masked_fill_ only supports boolean masks, but got mask ", "with dtype ",
              mask.scalar_type());
  TORCH_CHECK(self.device() == mask.device(), "expected self and mask to be on the same device, ",
              "but got mask on ", mask.device(), " and self on ", self.device());
  if (!value.is_cpu() && !canCast(value.scalar_type(), self.scalar_type())) {
    // Whether the value fits, the CPU has to see.
    return self.masked_fill_(mask, value.item());
  }
  if (at::has_internal_overlap(self) == MemOverlap::Yes) {
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation.");
    return fill_expanded(self, mask, value);
  }
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  at::assert_no_partial_overlap(self, mask);
  const auto expanded = expand_inplace(self, mask, "masked_fill_");
  select_into(self, *expanded,
              value.scalar_type() == self.scalar_type() ? value : value.to(self.scalar_type()));
  return self;
}

Tensor& MaskedFillScalar_(Tensor& self, const Tensor& mask, const Scalar& value) {
  const Scalar checked = CheckedScalar(value, self.scalar_type());
  return MaskedFillTensor_(self, mask,
                           at::detail::scalar_tensor_static(checked, self.scalar_type(), kCPU));
}

Tensor& MaskedSelectOut(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  TORCH_CHECK(self.device() == mask.device(), "masked_select(): expected self and mask on one ",
              "device, got ", self.device(), " and ", mask.device());
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  c10::musa::check_may_wait();
  const auto operands = expand_outplace(mask, self);
  const Tensor where = std::get<0>(operands)->contiguous().reshape({-1});
  Tensor source = std::get<1>(operands)->contiguous().reshape({-1});
  if (source.numel() == 0) {
    native::resize_output(out, {0});
    return out;
  }
  // A complex number moves as the 8- or 16-byte pattern it is: its two halves are selected one
  // after the other.
  const bool complex = source.is_complex();
  const int64_t planes = complex ? 2 : 1;
  if (complex) source = at::view_as_real(source).t().clone(MemoryFormat::Contiguous);
  const Tensor buffer = at::empty({planes, where.numel()}, source.options());
  std::vector<int64_t> selected;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const Tensor from = complex ? source.select(0, plane) : source;
    const Tensor to = buffer.select(0, plane);
    muTensor mu_in = CreateMUTensor(from);
    muTensor mu_mask = CreateMUTensor(where);
    muTensor mu_out = CreateMUTensor(to);
    ::musa::dnn::MaskedSelect op;
    CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_in, mu_mask, InternalMemAlloc),
                       "masked_select");
    CHECK_MUDNN_STATUS(mu_out.GetNdInfo(selected), "GetNdInfo");
  }
  native::resize_output(out, {selected[0]});
  const Tensor found = buffer.narrow(1, 0, selected[0]);
  if (complex) {
    at::view_as_real(out).copy_(found.t());
  } else {
    out.copy_(found.select(0, 0));
  }
  return out;
}

Tensor MaskedSelect(const Tensor& self, const Tensor& mask) {
  Tensor out = at::empty({0}, self.options());
  return MaskedSelectOut(self, mask, out);
}

Tensor& MaskedScatter_(Tensor& self, const Tensor& mask, const Tensor& source) {
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter_: expected self and source to have same dtypes but got ",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == kBool, "masked_scatter_ only supports boolean masks, but got ",
              "mask with dtype ", mask.scalar_type());
  TORCH_CHECK(self.device() == mask.device() && self.device() == source.device(),
              "masked_scatter_: expected self, mask and source on one device");
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  const auto where = expand_inplace(self, mask, "masked_scatter_");
  const bool complex = self.is_complex();
  const Tensor dense_mask =
      (complex ? where->unsqueeze(-1).expand_as(at::view_as_real(self)) : *where)
          .contiguous()
          .reshape({-1});
  Tensor target = (complex ? at::view_as_real(self) : self).contiguous();
  const Tensor from = (complex ? at::view_as_real(source) : source).contiguous().reshape({-1});
  // Reading the count costs a synchronization; muDNN would read past the end of a source that is
  // too short.
  const int64_t wanted = dense_mask.sum().item<int64_t>();
  TORCH_CHECK(wanted <= from.numel(), "Number of elements of source < number of ones in mask");
  if (wanted == 0) return self;
  muTensor mu_self =
      MakeContiguousMUTensor(target.mutable_data_ptr(), target.scalar_type(), {target.numel()});
  muTensor mu_mask = CreateMUTensor(dense_mask);
  muTensor mu_source = CreateMUTensor(from);
  ::musa::dnn::MaskedScatter op;
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_self, mu_mask, mu_source, InternalMemAlloc),
                     "masked_scatter_");
  const Tensor destination = complex ? at::view_as_real(self) : self;
  if (!destination.is_contiguous()) destination.copy_(target);
  return self;
}

}  // namespace at::musa
