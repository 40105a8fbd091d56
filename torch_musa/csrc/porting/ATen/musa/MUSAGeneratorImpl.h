// Where a ported source looks for ATen/cuda/CUDAGeneratorImpl.h.
#pragma once

#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"
