#include "Tf32.h"

#include <ATen/ops/where.h>

namespace musa::dnn::internal {

bool uses_tf32(const Handle& h, ComputeMode mode, Type type) {
  constexpr int kFirstWithTf32 = 22;
  return mode == ComputeMode::TENSOR && type == Type::FLOAT && h.GetAllowTF32() &&
         architecture() >= kFirstWithTf32;
}

at::Tensor to_tf32(const at::Tensor& t) {
  constexpr int64_t kDropped = (1 << 13) - 1;
  // The sign is a bit of its own, so adding to the bits rounds the magnitude.
  const at::Tensor bits = t.contiguous().view(at::kInt);
  const at::Tensor rounded = bits.add((kDropped + 1) / 2).bitwise_and(~kDropped).view(at::kFloat);
  return at::where(t.isfinite(), rounded, t);
}

}  // namespace musa::dnn::internal
