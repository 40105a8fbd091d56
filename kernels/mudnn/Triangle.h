#pragma once

#include <ATen/core/Tensor.h>

namespace at::musa {

enum class Triangle { Lower, Upper };

/// Copies one triangle of the matrices in `self` to `out` and zeroes the rest: Lower keeps column -
/// row <= diagonal, Upper keeps column - row >= diagonal. Any dtype; `out` may be `self`.
void CopyTriangle(Triangle triangle, const Tensor& self, int64_t diagonal, const Tensor& out);

}  // namespace at::musa
