// lerp.Scalar and lerp.Tensor, hung on PyTorch's stubs.
#include <ATen/core/Tensor.h>
#include <ATen/native/Lerp.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

bool has_cpu_scalar(const TensorIteratorBase& iter) {
  for (int arg = iter.noutputs(); arg < iter.ntensors(); ++arg) {
    if (iter.is_cpu_scalar(arg)) {
      return true;
    }
  }
  return false;
}

// Upstream's meta functions let every operand be a CPU scalar; a kernel reads what is on the
// device.
TensorIterator with_all_on_device(const TensorIteratorBase& iter) {
  TensorIteratorConfig config;
  config.add_output(iter.tensor(0)).resize_outputs(false);
  for (int arg = iter.noutputs(); arg < iter.ntensors(); ++arg) {
    config.add_owned_const_input(iter.tensor(arg).to(iter.device(0)));
  }
  return config.build();
}

void lerp_scalar_kernel(TensorIteratorBase& iter, const Scalar& weight) {
  if (has_cpu_scalar(iter)) {
    TensorIterator on_device = with_all_on_device(iter);
    return lerp_scalar_kernel(on_device, weight);
  }
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(opmath_dtype(iter), "lerp_cuda", [&] {
    const auto w = weight.to<scalar_t>();
    gpu_kernel(iter, [w] GPU_LAMBDA(scalar_t self, scalar_t end) -> scalar_t {
      return lerp(self, end, w);
    });
  });
}

void lerp_tensor_kernel(TensorIteratorBase& iter) {
  // A weight that is a CPU scalar never reaches the device as a tensor.
  if (iter.is_cpu_scalar(3)) {
    const Scalar weight = iter.tensor(3).item();
    iter.remove_operand(3);
    return lerp_scalar_kernel(iter, weight);
  }
  if (has_cpu_scalar(iter)) {
    TensorIterator on_device = with_all_on_device(iter);
    return lerp_tensor_kernel(on_device);
  }
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(opmath_dtype(iter), "lerp_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t self, scalar_t end, scalar_t weight) -> scalar_t {
      return lerp(self, end, weight);
    });
  });
}

}  // namespace

REGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel)
REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel)

}  // namespace at::native
