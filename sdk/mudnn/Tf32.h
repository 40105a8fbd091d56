// TF32: FLOAT operands of a product on the tensor cores lose all but 10 bits of their mantissas.
#pragma once

#include <ATen/core/Tensor.h>

#include "Internal.h"

namespace musa::dnn::internal {

// Whether a product of `type` in that mode runs so on the handle.
bool uses_tf32(const Handle& h, ComputeMode mode, Type type);

// `t` as the tensor cores read it: rounded to the nearest, ties away from zero.
at::Tensor to_tf32(const at::Tensor& t);

}  // namespace musa::dnn::internal
