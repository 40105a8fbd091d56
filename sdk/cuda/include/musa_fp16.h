// __half is CUDA's own, with all that belongs to it.
#pragma once

#include <cuda_fp16.h>
