// Where a ported source looks for c10/cuda/impl/CUDAGuardImpl.h.
#pragma once

#include "torch_musa/csrc/core/impl/MUSAGuardImpl.h"
