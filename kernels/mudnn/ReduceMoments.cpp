// var, std and their pairs with the mean.

#include "kernels/mudnn/Layout.h"
#include "kernels/mudnn/Reduction.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/std_mean_native.h>
#include <torch_musa/ops/std_native.h>
#include <torch_musa/ops/var_mean_native.h>
#include <torch_musa/ops/var_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/var.h>
#include <ATen/ops/view_as_real.h>

#include <limits>

namespace at::musa {
namespace {

void warn_of_lost_degrees(const char* name, const Tensor& self, const Tensor& out,
                          double degrees_lost) {
  // Of no elements there are no degrees; a NaN says nothing.
  const double covered = out.numel() > 0 ? static_cast<double>(self.numel()) / out.numel() : 0;
  if (covered <= degrees_lost) {
    TORCH_WARN(name,
               "(): degrees of freedom is <= 0. Correction should be strictly less than the "
               "reduction factor (input numel divided by output numel).");
  }
}

void spread(const char* name, bool take_sqrt, const Tensor& self, OptionalIntArrayRef dim,
            const std::optional<Scalar>& correction, bool keepdim, Tensor& out) {
  TORCH_CHECK(isFloatingType(self.scalar_type()) || self.is_complex(), name,
              " only support floating point and complex dtypes");
  const ScalarType result = c10::toRealValueType(self.scalar_type());
  TORCH_CHECK(canCast(result, out.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", out.scalar_type());
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  native::resize_output(out, ReducedShape(self, dim, keepdim));
  const double degrees_lost = correction ? correction->toDouble() : 1;
  warn_of_lost_degrees(name, self, out, degrees_lost);
  if (!self.is_complex()) CheckFloatingType(out.scalar_type(), "std_cpu");
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(std::numeric_limits<double>::quiet_NaN());
  } else if (self.is_complex()) {
    // The parts vary independently: |z - mean|^2 is the sum of their squares.
    const Tensor parts = at::view_as_real(self);
    const auto dims = ReducedDims(dim, self.dim());
    const DimArray part_dims(dims.begin(), dims.end());
    Tensor total = at::var(parts.select(-1, 0), IntArrayRef(part_dims), correction, keepdim);
    total.add_(at::var(parts.select(-1, 1), IntArrayRef(part_dims), correction, keepdim));
    out.copy_(take_sqrt ? total.sqrt_() : total);
  } else {
    Reduce({.name = name,
            .mode = take_sqrt ? ReduceMode::STD : ReduceMode::VARIANCE,
            .correction = degrees_lost},
           self, dim, out.scalar_type(), out);
  }
}

Tensor make_output(const Tensor& self) {
  return at::empty({0}, self.options().dtype(c10::toRealValueType(self.scalar_type())));
}

// muDNN has no reduction with two results; a kernel of our own reads `self` once.
std::tuple<Tensor, Tensor> spread_and_mean(const char* name, bool take_sqrt, const Tensor& self,
                                           OptionalIntArrayRef dim,
                                           const std::optional<Scalar>& correction, bool keepdim) {
  Tensor out = make_output(self);
  if (self.numel() == 0 || !isFloatingType(self.scalar_type())) {
    spread(name, take_sqrt, self, dim, correction, keepdim, out);
    return {out, at::mean(self, dim, keepdim)};
  }
  const c10::musa::MUSAGuard guard(self.device());
  Tensor mean = make_output(self);
  TensorIterator iter =
      native::make_reduction(name, out, mean, self, dim, keepdim, self.scalar_type());
  const double degrees_lost = correction ? correction->toDouble() : 1;
  warn_of_lost_degrees(name, self, out, degrees_lost);
  moments_kernel(iter, degrees_lost, take_sqrt);
  return {out, mean};
}

}  // namespace

Tensor& StdOut(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
               bool keepdim, Tensor& out) {
  spread("std", true, self, dim, correction, keepdim, out);
  return out;
}

Tensor& VarOut(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
               bool keepdim, Tensor& out) {
  spread("var", false, self, dim, correction, keepdim, out);
  return out;
}

Tensor Std(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
           bool keepdim) {
  Tensor out = make_output(self);
  spread("std", true, self, dim, correction, keepdim, out);
  return out;
}

Tensor Var(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
           bool keepdim) {
  Tensor out = make_output(self);
  spread("var", false, self, dim, correction, keepdim, out);
  return out;
}

std::tuple<Tensor, Tensor> StdMean(const Tensor& self, OptionalIntArrayRef dim,
                                   const std::optional<Scalar>& correction, bool keepdim) {
  return spread_and_mean("std_mean", true, self, dim, correction, keepdim);
}

std::tuple<Tensor, Tensor> VarMean(const Tensor& self, OptionalIntArrayRef dim,
                                   const std::optional<Scalar>& correction, bool keepdim) {
  return spread_and_mean("var_mean", false, self, dim, correction, keepdim);
}

}  // namespace at::musa
