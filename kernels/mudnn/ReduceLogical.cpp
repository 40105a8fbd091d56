#include "kernels/mudnn/Reduction.h"

#include <torch_musa/ops/all_native.h>
#include <torch_musa/ops/any_native.h>

namespace at::musa {
namespace {

// AND and OR over truth values. `out` is bool, or uint8: for a uint8 operand, or where asked for.
void logical(const char* name, ReduceMode mode, const Tensor& self, OptionalIntArrayRef dim,
             const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(mode == ReduceMode::AND);
  } else {
    Reduce({name, mode}, self, dim, self.scalar_type() == kByte ? kByte : kBool, out);
  }
}

// Unlike elsewhere, an empty list of dimensions reduces nothing here.
void logical_dims(const char* name, ReduceMode mode, const Tensor& self, OptionalIntArrayRef dim,
                  const Tensor& out) {
  if (dim.has_value() && dim->empty()) {
    out.copy_(self.to(kBool));
  } else {
    logical(name, mode, self, dim, out);
  }
}

}  // namespace

TORCH_IMPL_FUNC(MusaAllAll)(const Tensor& self, const Tensor& out) {
  logical("all", ReduceMode::AND, self, std::nullopt, out);
}

TORCH_IMPL_FUNC(MusaAllDim)
(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& out) {
  logical("all", ReduceMode::AND, self, dim, out);
}

TORCH_IMPL_FUNC(MusaAllDims)
(const Tensor& self, OptionalIntArrayRef dim, bool /*keepdim*/, const Tensor& out) {
  logical_dims("all", ReduceMode::AND, self, dim, out);
}

TORCH_IMPL_FUNC(MusaAnyAll)(const Tensor& self, const Tensor& out) {
  logical("any", ReduceMode::OR, self, std::nullopt, out);
}

TORCH_IMPL_FUNC(MusaAnyDim)
(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& out) {
  logical("any", ReduceMode::OR, self, dim, out);
}

TORCH_IMPL_FUNC(MusaAnyDims)
(const Tensor& self, OptionalIntArrayRef dim, bool /*keepdim*/, const Tensor& out) {
  logical_dims("any", ReduceMode::OR, self, dim, out);
}

}  // namespace at::musa
