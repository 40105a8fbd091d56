#include "Division.h"

#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/remainder.h>

#include <limits>

namespace musa::dnn::internal {
namespace {

void compute(Division division, at::Tensor& out, const at::Tensor& lhs, const at::Tensor& rhs) {
  switch (division) {
    case Division::FLOOR:
      at::floor_divide_out(out, lhs, rhs);
      return;
    case Division::TRUNCATE:
      at::div_out(out, lhs, rhs, "trunc");
      return;
    case Division::FLOOR_REMAINDER:
      at::remainder_out(out, lhs, rhs);
      return;
    case Division::TRUNCATE_REMAINDER:
      at::fmod_out(out, lhs, rhs);
      return;
  }
}

// The CPU's instruction traps where the quotient does not fit, and ATen lets it. A divisor of 1 in
// that place gives what wrapping around does, for quotients and remainders.
at::Tensor without_overflow(const at::Tensor& lhs, const at::Tensor& rhs, at::ScalarType type) {
  const bool traps = lhs.is_cpu() && (type == at::kInt || type == at::kLong);
  if (!traps) return rhs;
  const int64_t lowest =
      type == at::kInt ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  const at::Tensor is_lowest = at::eq(lhs, lowest);
  if (!is_lowest.any().item<bool>()) return rhs;
  return at::masked_fill(rhs, at::logical_and(is_lowest, at::eq(rhs, -1)), 1);
}

}  // namespace

void divide(Division division, at::Tensor& out, const at::Tensor& lhs, const at::Tensor& rhs,
            bool later) {
  const at::ScalarType type = out.scalar_type();
  if (c10::isFloatingType(type)) return compute(division, out, lhs, rhs);
  const at::Tensor divisor = without_overflow(lhs, rhs, type);
  if (!later) return compute(division, out, lhs, divisor);
  const at::Tensor by_zero = at::eq(rhs, 0);
  compute(division, out, lhs, at::masked_fill(divisor, by_zero, 1));
  out.masked_fill_(by_zero, c10::isSignedType(type) ? at::Scalar(-1) : at::Scalar(255));  // UINT8
}

}  // namespace musa::dnn::internal
