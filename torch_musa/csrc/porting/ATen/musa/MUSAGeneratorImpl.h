// Where a ported source looks for ATen/cuda/CUDAGeneratorImpl.h, which declares its class in
// namespace at.
#pragma once

#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"

namespace at {

using musa::MUSAGeneratorImpl;

}  // namespace at
