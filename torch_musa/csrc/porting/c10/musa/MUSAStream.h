// Where a ported source looks for c10/cuda/CUDAStream.h.
#pragma once

#include <c10/musa/MUSAException.h>

#include "torch_musa/csrc/core/MUSAStream.h"
