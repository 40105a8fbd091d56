// Where a ported source looks for curand_philox4x32_x.h: the generator that kernels draw from.
#pragma once

#include "murand_kernel.h"
