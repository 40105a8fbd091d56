// amax, amin, max, min, argmax, argmin, aminmax.

#include "kernels/mudnn/Reduction.h"

#include <torch_musa/ops/amax_native.h>
#include <torch_musa/ops/amin_native.h>
#include <torch_musa/ops/aminmax_native.h>
#include <torch_musa/ops/argmax_native.h>
#include <torch_musa/ops/argmin_native.h>
#include <torch_musa/ops/max_native.h>
#include <torch_musa/ops/min_native.h>

#include <ATen/native/Resize.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>

namespace at::musa {
namespace {

void extremum(const char* name, ReduceMode mode, const Tensor& self, IntArrayRef dim,
              const Tensor& out) {
  if (out.numel() == 0) return;
  const ScalarType dtype = self.scalar_type();
  if (dtype == kBool) {
    // The larger of two bools is their OR, the smaller their AND.
    mode = mode == ReduceMode::MAX ? ReduceMode::OR : ReduceMode::AND;
  } else {
    CheckComputeType(dtype, name);
  }
  Reduce({name, mode}, self, dim, dtype, out);
}

void with_indices(const char* name, ReduceMode mode, const Tensor& self, int64_t dim,
                  const Tensor& values, const Tensor& indices) {
  if (self.numel() > 0) ReduceWithIndices(name, mode, self, dim, values, indices);
}

void position(const char* name, ReduceMode mode, const Tensor& self, std::optional<int64_t> dim,
              const Tensor& out) {
  if (out.numel() > 0) ReduceWithIndices(name, mode, self, dim, Tensor(), out);
}

Tensor& copy_extremum(const Tensor& extremum, Tensor& out) {
  TORCH_CHECK(extremum.device() == out.device(),
              "Expected all tensors to be on the same device, got ", extremum.device(), " and ",
              out.device());
  TORCH_CHECK(canCast(extremum.scalar_type(), out.scalar_type()), "result type ",
              extremum.scalar_type(), " can't be cast to the desired output type ",
              out.scalar_type());
  native::resize_output(out, extremum.sizes());
  return out.copy_(extremum);
}

}  // namespace

TORCH_IMPL_FUNC(MusaAmax)
(const Tensor& self, IntArrayRef dim, bool /*keepdim*/, const Tensor& out) {
  extremum("amax", ReduceMode::MAX, self, dim, out);
}

TORCH_IMPL_FUNC(MusaAmin)
(const Tensor& self, IntArrayRef dim, bool /*keepdim*/, const Tensor& out) {
  extremum("amin", ReduceMode::MIN, self, dim, out);
}

TORCH_IMPL_FUNC(MusaMaxDim)
(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values, const Tensor& indices) {
  with_indices("max", ReduceMode::MAX, self, dim, values, indices);
}

TORCH_IMPL_FUNC(MusaMinDim)
(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values, const Tensor& indices) {
  with_indices("min", ReduceMode::MIN, self, dim, values, indices);
}

TORCH_IMPL_FUNC(MusaArgmax)
(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/, const Tensor& out) {
  position("argmax", ReduceMode::MAX, self, dim, out);
}

TORCH_IMPL_FUNC(MusaArgmin)
(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/, const Tensor& out) {
  position("argmin", ReduceMode::MIN, self, dim, out);
}

TORCH_IMPL_FUNC(MusaAminmax)
(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/, const Tensor& min,
 const Tensor& max) {
  const IntArrayRef dims = dim ? IntArrayRef(*dim) : IntArrayRef();
  extremum("aminmax", ReduceMode::MIN, self, dims, min);
  extremum("aminmax", ReduceMode::MAX, self, dims, max);
}

Tensor Max(const Tensor& self) {
  TORCH_CHECK(self.numel() > 0,
              "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
              "reduction dim with the 'dim' argument.");
  return at::amax(self, {});
}

Tensor Min(const Tensor& self) {
  TORCH_CHECK(self.numel() > 0,
              "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
              "reduction dim with the 'dim' argument.");
  return at::amin(self, {});
}

Tensor& MaxUnaryOut(const Tensor& self, Tensor& out) { return copy_extremum(Max(self), out); }

Tensor& MinUnaryOut(const Tensor& self, Tensor& out) { return copy_extremum(Min(self), out); }

}  // namespace at::musa
