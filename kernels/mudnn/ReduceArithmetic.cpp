// sum, mean, prod and what is built of them.

#include "kernels/mudnn/Layout.h"
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
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
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

// Sum or product in out's dtype. muDNN's Reduce has no ADD for UINT8 and BOOL, and no PROD for
// BOOL: those elements are added and multiplied as integers.
void reduce_in(const Reduction& reduction, const Tensor& self, OptionalIntArrayRef dim,
               const Tensor& out) {
  const ScalarType dtype = out.scalar_type();
  if (dtype == kByte || dtype == kBool) {
    Reduce(reduction, self.to(dtype), dim, kLong, out);
  } else {
    CheckComputeType(dtype, reduction.name);
    Reduce(reduction, self, dim, dtype, out);
  }
}

// The product of complex numbers, by halves: muDNN has no complex types, and a product does not
// split into real and imaginary parts. `out` has its final shape.
void complex_prod(const Tensor& self, OptionalIntArrayRef dim, const Tensor& out) {
  const auto reduced = ReducedDims(dim, self.dim());
  // The reduced dimensions become the last one.
  DimVector order;
  for (int d = 0; d < self.dim(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) order.push_back(d);
  }
  order.append(reduced.begin(), reduced.end());
  Tensor factors = self.to(out.scalar_type()).permute(order).reshape({out.numel(), -1});
  while (factors.size(1) > 1) {
    const int64_t count = factors.size(1);
    const int64_t half = count / 2;
    Tensor product = at::mul(factors.narrow(1, 0, half), factors.narrow(1, half, half));
    if (count % 2 != 0) product.select(1, 0).mul_(factors.select(1, count - 1));
    factors = std::move(product);
  }
  out.copy_(factors.reshape(out.sizes()));
}

void prod(const Tensor& self, OptionalIntArrayRef dim, const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(1);
  } else if (out.is_complex()) {
    complex_prod(self, dim, out);
  } else {
    reduce_in({"prod_cpu", ReduceMode::PROD}, self, dim, out);
  }
}

// What nansum sums in dtype `dtype`. Integers have no NaN.
Tensor without_nan(const Tensor& self, ScalarType dtype) {
  TORCH_CHECK(!self.is_complex(), "nansum does not support complex inputs");
  if (isIntegralType(self.scalar_type(), /*includeBool=*/true)) return self;
  TORCH_CHECK_NOT_IMPLEMENTED(!isComplexType(dtype), "\"nansum_cpu\" not implemented for '",
                              toString(dtype), "'");
  return self.masked_fill(at::isnan(self), 0);
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
    reduce_in({"sum_cpu", ReduceMode::ADD}, self, dim, out);
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
  prod(self, dim, out);
}

Tensor Prod(const Tensor& self, std::optional<ScalarType> dtype) {
  const bool promoted = isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const ScalarType result = dtype.value_or(promoted ? kLong : self.scalar_type());
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  const Tensor out = at::empty({}, self.options().dtype(result));
  prod(self, std::nullopt, out);
  return out;
}

Tensor CountNonzero(const Tensor& self, IntArrayRef dim) { return self.ne(0).sum(dim); }

Tensor& NansumOut(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                  std::optional<ScalarType> dtype, Tensor& out) {
  // As on the CPU, only the functional overload sums floating-point numbers in integers.
  if (self.is_floating_point()) CheckFloatingType(dtype.value_or(out.scalar_type()), "nansum_cpu");
  return at::sum_out(out, without_nan(self, dtype.value_or(out.scalar_type())), dim, keepdim,
                     dtype);
}

Tensor Nansum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
              std::optional<ScalarType> dtype) {
  return at::sum(without_nan(self, dtype.value_or(self.scalar_type())), dim, keepdim, dtype);
}

Tensor Trace(const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != kBool, "\"trace\" not implemented for 'Bool'");
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}

}  // namespace at::musa
