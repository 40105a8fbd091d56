// Division and remainder, of integers as a card's.
#pragma once

#include <ATen/core/Tensor.h>

#include "Internal.h"

namespace musa::dnn::internal {

enum class Division { FLOOR, TRUNCATE, FLOOR_REMAINDER, TRUNCATE_REMAINDER };

// Neither a zero nor the lowest number divided by -1 is a fault of a card: it writes some number
// for the first (here one with all bits set) and wraps around to the lowest for the other. A zero
// throws where `later` does not say that nobody is left to take the Status which that becomes.
void divide(Division division, at::Tensor& out, const at::Tensor& lhs, const at::Tensor& rhs,
            bool later);

// Whether the call returns before its work is done, or is recorded.
inline bool runs_later(const Call& c) {
  return !c.now([] {});
}

}  // namespace musa::dnn::internal
