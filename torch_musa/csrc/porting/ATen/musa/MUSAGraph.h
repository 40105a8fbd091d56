// Where a ported source looks for ATen/cuda/CUDAGraph.h.
#pragma once

#include "torch_musa/csrc/aten/musa/MUSAGraph.h"
