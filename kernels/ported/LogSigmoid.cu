// log_sigmoid and its gradient. PyTorch's CPU kernels keep a buffer between the two; here the
// gradient is computed from the input alone; the buffer is empty, and one that is given stays as it
// is.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "kernels/ported/OpmathDispatch.cuh"

#include <tuple>

namespace at::musa {

std::tuple<Tensor&, Tensor&> LogSigmoidForwardOut(const Tensor& self, Tensor& output,
                                                  Tensor& buffer) {
  const c10::cuda::OptionalCUDAGuard guard(self.device());
  output.resize_(self.sizes());  // without a warning, as on the CPU
  auto iter = TensorIterator::unary_op(output, self);
  AT_DISPATCH_FLOATING_TYPES(native::opmath_dtype(iter), "log_sigmoid_forward_cuda", [&] {
    native::gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> scalar_t {
      return (x < scalar_t(0) ? x : scalar_t(0)) - std::log1p(std::exp(-std::abs(x)));
    });
  });
  return std::tuple<Tensor&, Tensor&>(output, buffer);
}

std::tuple<Tensor, Tensor> LogSigmoidForward(const Tensor& self) {
  Tensor output = at::empty({0}, self.options());
  Tensor buffer = at::empty({0}, self.options());
  LogSigmoidForwardOut(self, output, buffer);
  return {output, buffer};
}

Tensor& LogSigmoidBackwardOut(const Tensor& grad_output, const Tensor& self,
                              const Tensor& /*buffer*/, Tensor& grad_input) {
  const c10::cuda::OptionalCUDAGuard guard(self.device());
  // one dtype for all: the gradient of a loss is not cast on the way out
  auto iter = TensorIteratorConfig()
                  .add_output(grad_input)
                  .add_const_input(grad_output)
                  .add_const_input(self)
                  .build();
  AT_DISPATCH_FLOATING_TYPES(native::opmath_dtype(iter), "log_sigmoid_backward_cuda", [&] {
    native::gpu_kernel(iter, [] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      // 1 - sigmoid(x), without the cancellation for negative x.
      const scalar_t z = std::exp(-std::abs(x));
      const scalar_t tail = z / (scalar_t(1) + z);
      return grad * (x < scalar_t(0) ? scalar_t(1) - tail : tail);
    });
  });
  return grad_input;
}

Tensor LogSigmoidBackward(const Tensor& grad_output, const Tensor& self, const Tensor& buffer) {
  Tensor grad_input = at::empty({0}, grad_output.options());
  return LogSigmoidBackwardOut(grad_output, self, buffer, grad_input);
}

}  // namespace at::musa
