// The gradients of prelu for its input and, before the reduction that autograd does, its weight.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/cuda/CUDAGuard.h>

#include <tuple>

namespace at::musa {

std::tuple<Tensor, Tensor> PreluBackward(const Tensor& grad_output, const Tensor& self,
                                         const Tensor& weight) {
  const c10::cuda::OptionalCUDAGuard guard(self.device());
  const auto make_iterator = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return TensorIteratorConfig()
        .add_owned_output(Tensor())
        .add_const_input(a)
        .add_const_input(b)
        .add_const_input(c)
        .build();
  };
  auto for_self = make_iterator(self, weight, grad_output);
  auto for_weight = make_iterator(self, weight, grad_output);
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, self.scalar_type(), "prelu_backward_cuda", [&] {
    native::gpu_kernel(for_self, [] GPU_LAMBDA(scalar_t x, scalar_t w, scalar_t grad) -> scalar_t {
      return x > scalar_t(0) ? grad : w * grad;
    });
    native::gpu_kernel(for_weight,
                       [] GPU_LAMBDA(scalar_t x, scalar_t /*w*/, scalar_t grad) -> scalar_t {
                         return x > scalar_t(0) ? scalar_t(0) : x * grad;
                       });
  });
  return {for_self.output(), for_weight.output()};
}

}  // namespace at::musa
