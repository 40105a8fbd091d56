// musa::swiglu, an operator of our own: silu(gate) * up, where gate and up are the halves of the
// last dimension. One pass over the input, where PyTorch's own operators take three.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "kernels/ported/OpmathDispatch.cuh"
#include "kernels/ported/SwiGlu.h"

#include <cmath>

namespace at::musa {

Tensor SwiGlu(const Tensor& input) {
  const DimVector sizes = swiglu_sizes(input);
  const c10::cuda::OptionalCUDAGuard guard(input.device());
  Tensor out = at::empty(sizes, input.options());
  const int64_t width = sizes.back();
  auto iter = TensorIteratorConfig()
                  .add_output(out)
                  .add_owned_const_input(input.narrow(-1, 0, width))
                  .add_owned_const_input(input.narrow(-1, width, width))
                  .build();
  AT_DISPATCH_FLOATING_TYPES(native::opmath_dtype(iter), "swiglu_cuda", [&] {
    native::gpu_kernel(iter, [] GPU_LAMBDA(scalar_t gate, scalar_t up) -> scalar_t {
      return gate / (scalar_t(1) + std::exp(-gate)) * up;
    });
  });
  return out;
}

}  // namespace at::musa
