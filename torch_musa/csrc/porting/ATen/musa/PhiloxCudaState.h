// Where a ported source looks for ATen/cuda/PhiloxCudaState.h. (The file's name has no prefix that
// a port would exchange.)
#pragma once

#include "torch_musa/csrc/aten/musa/PhiloxState.h"

namespace at {

using PhiloxMusaState = musa::PhiloxState;

}  // namespace at
