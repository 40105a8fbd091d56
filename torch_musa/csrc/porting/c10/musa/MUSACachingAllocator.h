// Where a ported source looks for c10/cuda/CUDACachingAllocator.h: allocation and the bookkeeping
// that kernels need.
#pragma once

#include "torch_musa/csrc/core/MUSACachingAllocator.h"
