// Where a ported source looks for c10/cuda/CUDAException.h.
#pragma once

#include "torch_musa/csrc/core/MUSAException.h"
