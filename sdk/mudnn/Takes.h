// Which types the modes of elementwise classes take.
#pragma once

#include "Internal.h"

namespace musa::dnn::internal {

enum class Takes {
  FLOATING,
  NUMBERS,
  DIVISORS,     // numbers; what happens to a zero depends on when the work runs (Division.h)
  ALL_NUMBERS,  // UINT64 as well
  ORDERED,      // numbers and BOOL
  ANYTHING,
};

inline void require_taken(Takes takes, Type type) {
  const bool is_number = is_floating(type) || is_integral(type);
  bool taken = true;
  switch (takes) {
    case Takes::FLOATING:
      taken = is_floating(type);
      break;
    case Takes::NUMBERS:
    case Takes::DIVISORS:
      taken = is_number && has_kernels(type);
      break;
    case Takes::ALL_NUMBERS:
      taken = is_number;
      break;
    case Takes::ORDERED:
      taken = has_kernels(type);
      break;
    case Takes::ANYTHING:
      break;
  }
  require(taken, "the mode does not take operands of this type", Status::NOT_SUPPORTED);
}

}  // namespace musa::dnn::internal
