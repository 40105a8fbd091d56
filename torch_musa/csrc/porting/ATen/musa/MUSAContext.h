// Where a ported source looks for ATen/cuda/CUDAContext.h.
#pragma once

#include "torch_musa/csrc/aten/musa/MUSAContext.h"
