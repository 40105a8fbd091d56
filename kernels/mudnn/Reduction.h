#pragma once

// The layer between PyTorch's reductions and muDNN's Reduce, which takes neither rank 0 nor empty
// tensors, wants one dtype throughout, and mistreats operands that repeat an element by stride 0.

#include "kernels/mudnn/Operands.h"

#include <ATen/WrapDimUtilsMulti.h>

namespace at::musa {

using ReduceMode = ::musa::dnn::Reduce::Mode;

/// The dimensions that `dim` names: sorted and wrapped; all of them if it is absent or empty.
c10::SmallVector<int, 8> ReducedDims(OptionalIntArrayRef dim, int64_t rank);

/// The shape of a reduction's result.
DimArray ReducedShape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim);

struct Reduction {
  const char* name;
  ReduceMode mode;
  double norm_order = 2;
  double correction = 1;
};

/// out = mode over `dim` of `self` cast to `compute`, then cast to out's dtype. `out` has its final
/// shape, with or without the reduced dimensions; `self` and `out` are not empty.
void Reduce(const Reduction& reduction, const Tensor& self, OptionalIntArrayRef dim,
            ScalarType compute, const Tensor& out);

/// MAX or MIN along one dimension with the position of the extremum; `values` may be undefined.
/// Without `dim` the position counts the flattened tensor. Values are in self's dtype, indices
/// int64, and neither is empty.
void ReduceWithIndices(const char* name, ReduceMode mode, const Tensor& self,
                       std::optional<int64_t> dim, const Tensor& values, const Tensor& indices);

}  // namespace at::musa
