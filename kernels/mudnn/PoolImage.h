#pragma once

// What the pooling operators share: (C, H, W) images are batches of one, layouts follow the input,
// empty batches do nothing.

#include <ATen/core/Tensor.h>

#include "kernels/mudnn/Layout.h"

namespace at::musa {

/// Runs `pool` from `input` to `out`, and to `indices` where the mode has some (else pass an
/// undefined tensor). Images have rank 3 or 4.
void PoolImage(const ::musa::dnn::Pooling& pool, const Tensor& input, const Tensor& out,
               const Tensor& indices);

/// The gradient of the above.
void PoolImageBackward(const ::musa::dnn::Pooling& pool, const Tensor& grad_output,
                       const Tensor& indices, const Tensor& grad_input);

}  // namespace at::musa
