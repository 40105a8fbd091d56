// Where a ported source looks for ATen/cuda/CUDAConfig.h: which of CUDA's optional libraries a
// build has. None.
#pragma once

#define AT_CUDNN_ENABLED() 0
#define AT_CUSPARSELT_ENABLED() 0
#define AT_ROCM_ENABLED() 0
#define AT_MAGMA_ENABLED() 0
