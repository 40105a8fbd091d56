// __mt_bfloat16 is CUDA's __nv_bfloat16; its functions have the same names.
#pragma once

#include <cuda_bf16.h>

using __mt_bfloat16 = __nv_bfloat16;
using __mt_bfloat162 = __nv_bfloat162;
using mt_bfloat16 = __nv_bfloat16;
using mt_bfloat162 = __nv_bfloat162;
