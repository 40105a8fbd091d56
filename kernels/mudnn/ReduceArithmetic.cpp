// sum, mean, prod and what is built of them.

#include "kernels/mudnn/Reduction.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/count_nonzero_native.h>
#include <torch_musa/ops/mean_native.h>
#include <torch_musa/ops/nansum_native.h>
#include <torch_musa/ops/prod_native.h>
#include <torch_musa/ops/sum_native.h>
#include <torch_musa/ops/trace_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_real.h>

#include <limits>

namespace at::musa {
namespace {

// A linear reduction of complex numbers is the reduction of their parts.
using LinearOut = Tensor& (*)(Tensor&, const Tensor&, OptionalIntArrayRef, bool,
                              std::optional<ScalarType>);

void reduce_parts(LinearOut reduce, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                  const Tensor& out) {
  const auto dims = ReducedDims(dim, self.dim());
  const DimArray real_dims(dims.begin(), dims.end());
  Tensor parts = at::view_as_real(out);
  const Tensor in = at::view_as_real(self.to(out.scalar_type()));
  if (real_dims.empty()) {  // rank 0; an empty list would reduce the parts
    parts.copy_(in);
  } else {
    reduce(parts, in, IntArrayRef(real_dims), keepdim, std::nullopt);
  }
}

// muDNN's Reduce has no ADD for UINT8 and BOOL, and no PROD for BOOL: those are computed as
// integers.
ScalarType integer_for(ScalarType dtype) {
  return dtype == kByte || dtype == kBool ? kLong : dtype;
}

}  // namespace

TORCH_IMPL_FUNC(MusaSum)
(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> /*dtype*/,
 const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.zero_();
  } else if (out.is_complex()) {
    reduce_parts(static_cast<LinearOut>(at::sum_out), self, dim, keepdim, out);
  } else {
    Reduce({"sum", ReduceMode::ADD}, self, dim, integer_for(out.scalar_type()), out);
  }
}

TORCH_IMPL_FUNC(MusaMean)
(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> /*dtype*/,
 const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(std::numeric_limits<double>::quiet_NaN());
  } else if (out.is_complex()) {
    reduce_parts(static_cast<LinearOut>(at::mean_out), self, dim, keepdim, out);
  } else {
    Reduce({"mean", ReduceMode::MEAN}, self, dim, out.scalar_type(), out);
  }
}

TORCH_IMPL_FUNC(MusaProd)
(const Tensor& self, int64_t dim, bool /*keepdim*/, std::optional<ScalarType> /*dtype*/,
 const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(1);
  } else {
    const ScalarType compute = integer_for(out.scalar_type());
    CheckComputeType(compute, "prod_cpu");
    Reduce({"prod", ReduceMode::PROD}, self, dim, compute, out);
  }
}

Tensor Prod(const Tensor& self, std::optional<ScalarType> dtype) {
  const bool promoted = isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const ScalarType result = dtype.value_or(promoted ? kLong : self.scalar_type());
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  const Tensor out = at::empty({}, self.options().dtype(result));
  if (self.numel() == 0) return out.fill_(1);
  const ScalarType compute = integer_for(result);
  CheckComputeType(compute, "prod_cpu");
  Reduce({"prod", ReduceMode::PROD}, self, std::nullopt, compute, out);
  return out;
}

Tensor CountNonzero(const Tensor& self, IntArrayRef dim) { return self.ne(0).sum(dim); }

Tensor& NansumOut(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                  std::optional<ScalarType> dtype, Tensor& out) {
  TORCH_CHECK(!self.is_complex(), "nansum does not support complex inputs");
  const bool exact = isIntegralType(self.scalar_type(), /*includeBool=*/true);
  return at::sum_out(out, exact ? self : self.masked_fill(at::isnan(self), 0), dim, keepdim, dtype);
}

Tensor Nansum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
              std::optional<ScalarType> dtype) {
  TORCH_CHECK(!self.is_complex(), "nansum does not support complex inputs");
  const bool exact = isIntegralType(self.scalar_type(), /*includeBool=*/true);
  return at::sum(exact ? self : self.masked_fill(at::isnan(self), 0), dim, keepdim, dtype);
}

Tensor Trace(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}

}  // namespace at::musa
