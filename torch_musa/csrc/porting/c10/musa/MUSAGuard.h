// Where a ported source looks for c10/cuda/CUDAGuard.h.
#pragma once

#include "torch_musa/csrc/core/MUSAGuard.h"
