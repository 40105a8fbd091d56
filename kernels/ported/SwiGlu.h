#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/DimVector.h>

namespace at::musa {

/// The output's sizes: the input's with the last one halved. Throws where that cannot be done.
inline DimVector swiglu_sizes(const Tensor& input) {
  TORCH_CHECK(input.dim() >= 1 && input.size(-1) % 2 == 0,
              "swiglu: expected an even last dimension, but the input has sizes ", input.sizes());
  DimVector sizes(input.sizes());
  sizes.back() /= 2;
  return sizes;
}

}  // namespace at::musa
