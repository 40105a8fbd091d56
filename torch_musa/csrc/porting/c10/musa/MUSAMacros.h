// Where a ported source looks for c10/cuda/CUDAMacros.h.
#pragma once

#include <c10/macros/Macros.h>

#define C10_MUSA_EXPORT C10_EXPORT
#define C10_MUSA_IMPORT C10_IMPORT
#define C10_MUSA_API C10_IMPORT

/// Devices that tables indexed by device have room for.
#define C10_COMPILE_TIME_MAX_GPUS 120
