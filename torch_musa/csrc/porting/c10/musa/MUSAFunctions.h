// Where a ported source looks for c10/cuda/CUDAFunctions.h.
#pragma once

#include "torch_musa/csrc/core/MUSAFunctions.h"
