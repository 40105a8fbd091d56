// Sums of float tensors of different widths, as autocast makes them of a residual and a layer's
// output: muDNN's operands have one type, and casting one of them first is a pass of its own.
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/PortedKernels.h"

namespace at::musa {

using native::gpu_kernel;

void mixed_add_kernel(TensorIteratorBase& iter, const Scalar& alpha) {
  const auto factor = alpha.to<float>();
  gpu_kernel(iter, [factor] GPU_LAMBDA(float a, float b) -> float { return a + factor * b; });
}

}  // namespace at::musa
