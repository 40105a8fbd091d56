// thrust::musa::par, par.on(stream), par_nosync.
#pragma once

#include <thrust/system/musa/detail/algorithms.h>
#include <thrust/system/musa/detail/policy.h>
