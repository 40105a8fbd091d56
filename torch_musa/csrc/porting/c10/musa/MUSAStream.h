// Where a ported source looks for c10/cuda/CUDAStream.h.
#pragma once

#include "torch_musa/csrc/core/MUSAStream.h"
