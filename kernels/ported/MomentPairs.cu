// The variance, or its root, and the mean of what a reduction covers: Welford's recurrence gives
// both in one pass, where a reduction for each would read everything twice.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/native/SharedReduceOps.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Reduce.cuh>

#include <thrust/pair.h>

#include "kernels/ported/PortedKernels.h"

namespace at::musa {

void moments_kernel(TensorIterator& iter, double correction, bool take_sqrt) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.input_dtype(), "moments", [&] {
    using accumulated_t = acc_type<scalar_t, /*is_cuda=*/true>;
    using Results = thrust::pair<scalar_t, scalar_t>;
    const native::WelfordOps<scalar_t, accumulated_t, int32_t, Results> ops{
        static_cast<accumulated_t>(correction), take_sqrt};
    native::gpu_reduce_kernel<scalar_t, scalar_t, 2>(iter, ops,
                                                     native::WelfordData<accumulated_t, int32_t>{});
  });
}

}  // namespace at::musa
