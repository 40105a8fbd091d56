// thrust::musa::par, par.on(stream), par_nosync: CUDA's.
#pragma once

#include <thrust/system/cuda/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace musa = ::thrust::cuda;
THRUST_NAMESPACE_END
