// Types of what a normalization has beside its values: parameters and statistics.
#pragma once

#include <initializer_list>

#include "Internal.h"

namespace musa::dnn::internal {

// All that are given have one type: in's, or FLOAT beside HALF and BFLOAT16. Anything else:
// NOT_SUPPORTED.
inline void check_parameter_types(const Tensor& in,
                                  std::initializer_list<const Tensor*> parameters) {
  const Tensor* first = nullptr;
  for (const Tensor* t : parameters) {
    if (absent(*t)) continue;
    const bool wider = is_low_precision(type(in)) && type(*t) == Type::FLOAT;
    require(type(*t) == type(in) || wider, "parameters and statistics have the type of the values",
            Status::NOT_SUPPORTED);
    if (first == nullptr) first = t;
    require(type(*t) == type(*first), "parameters and statistics have one type",
            Status::NOT_SUPPORTED);
  }
}

}  // namespace musa::dnn::internal
