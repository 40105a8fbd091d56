// Vectors of the `musa` system: CUDA's.
#pragma once

#include <thrust/system/cuda/vector.h>
#include <thrust/system/musa/execution_policy.h>
