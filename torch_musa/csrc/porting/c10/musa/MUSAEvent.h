// Where a ported source looks for c10/cuda/CUDAEvent.h.
#pragma once

#include "torch_musa/csrc/core/MUSAEvent.h"
