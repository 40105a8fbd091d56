// Types of what a normalization has beside its values: parameters and statistics.
#pragma once

#include <ATen/AccumulateType.h>
#include <ATen/core/Tensor.h>

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

// Saved statistics as ATen's gradients read them: CUDA's in the type that it accumulates in,
// whatever the operand holds; the CPU's in the operand's own.
inline at::Tensor saved_statistic(const at::Tensor& statistic, const at::Tensor& values) {
  if (!statistic.defined() || !values.is_cuda()) return statistic;
  return statistic.to(at::toAccumulateType(values.scalar_type(), /*is_cuda=*/true));
}

// Values beside parameters of a wider type. CUDA's layer and group normalizations read both in one
// type, so there the values are widened first.
inline at::Tensor beside(const at::Tensor& values, const at::Tensor& parameter) {
  if (!parameter.defined() || !values.is_cuda()) return values;
  return values.to(parameter.scalar_type());
}

}  // namespace musa::dnn::internal
