#include "kernels/mudnn/AlongDim.h"

#include <torch_musa/ops/cumprod_native.h>
#include <torch_musa/ops/cumsum_native.h>

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

namespace at::musa {
namespace {

using CumMode = ::musa::dnn::Cum::Mode;

// muDNN accumulates floating point, INT32 and INT64.
ScalarType accumulation_type(ScalarType dtype) {
  return dtype == kByte || dtype == kChar || dtype == kShort ? kLong : dtype;
}

void accumulate(const char* name, CumMode mode, const Tensor& self, int64_t dim,
                const Tensor& out) {
  // As on the CPU, where there is nothing to add up any dtype will do.
  if (self.dim() == 0) {
    out.copy_(self);
    return;
  }
  if (out.numel() == 0) return;
  CheckComputeType(out.scalar_type(), name);
  const ScalarType compute = accumulation_type(out.scalar_type());
  // The element type comes first: the sums of an int8 tensor cast to int64 do not wrap.
  const Tensor in = self.to(out.scalar_type()).to(compute).contiguous();
  const Tensor target = out.scalar_type() == compute && out.is_contiguous()
                            ? out
                            : at::empty(out.sizes(), out.options().dtype(compute));
  const int64_t wrapped = maybe_wrap_dim(dim, self.dim());
  muTensor mu_in = DescribeAlong(in, wrapped);
  muTensor mu_out = DescribeAlong(target, wrapped);
  ::musa::dnn::Cum op;
  CHECK_MUDNN_STATUS(op.SetMode(mode), "SetMode");
  CHECK_MUDNN_STATUS(op.SetDim(kAlongAxis), "SetDim");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_in, InternalMemAlloc), name);
  if (!target.is_same(out)) out.copy_(target);
}

// Running products of complex numbers, for which muDNN has no types: after the step of length s,
// element i holds the product of the last 2s elements up to i.
void complex_cumprod(const Tensor& self, int64_t dim, const Tensor& out) {
  if (!out.is_same(self)) out.copy_(self);
  if (self.dim() == 0 || self.numel() == 0) return;
  const int64_t size = self.size(dim);
  for (int64_t step = 1; step < size; step *= 2) {
    const Tensor before = out.narrow(dim, 0, size - step).clone();
    out.narrow(dim, step, size - step).mul_(before);
  }
}

}  // namespace

TORCH_IMPL_FUNC(MusaCumsum)
(const Tensor& self, int64_t dim, std::optional<ScalarType> /*dtype*/, const Tensor& out) {
  if (out.is_complex()) {
    Tensor parts = at::view_as_real(out);
    const Tensor in = at::view_as_real(self.to(out.scalar_type()));
    if (self.dim() == 0) {
      parts.copy_(in);
    } else {
      at::cumsum_out(parts, in, maybe_wrap_dim(dim, self.dim()));
    }
  } else {
    accumulate("cumsum_out_cpu", CumMode::ADD, self, dim, out);
  }
}

TORCH_IMPL_FUNC(MusaCumprod)
(const Tensor& self, int64_t dim, std::optional<ScalarType> /*dtype*/, const Tensor& out) {
  if (out.is_complex()) {
    complex_cumprod(self, maybe_wrap_dim(dim, self.dim()), out);
  } else {
    accumulate("cumprod_out_cpu", CumMode::MUL, self, dim, out);
  }
}

}  // namespace at::musa
