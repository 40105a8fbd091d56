// CUDA's, under the name of the `musa` system.
#pragma once

#include <thrust/system/cuda/memory.h>
#include <thrust/system/musa/execution_policy.h>
