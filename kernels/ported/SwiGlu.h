#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/DimVector.h>

namespace at::musa {

/// The output's sizes: the input's with the last one halved. Throws where that cannot be done.
inline DimVector swiglu_sizes(const Tensor& input) {
  DimVector sizes(input.sizes());
  TORCH_CHECK(!sizes.empty() && sizes.back() % 2 == 0,
              "swiglu: expected an even last dimension, but the input has sizes ", input.sizes());
  sizes.back() /= 2;
  return sizes;
}

/// The same of a tensor without data, whose sizes may be symbols.
inline SymDimVector swiglu_symbolic_sizes(const Tensor& input) {
  SymDimVector sizes(input.sym_sizes());
  TORCH_CHECK(!sizes.empty() && sizes.back() % 2 == 0,
              "swiglu: expected an even last dimension, but the input has sizes ",
              input.sym_sizes());
  sizes.back() = sizes.back() / 2;
  return sizes;
}

}  // namespace at::musa
