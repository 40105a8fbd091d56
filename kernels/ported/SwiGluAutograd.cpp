// What torch needs to know of musa::swiglu beyond its kernel: shapes without data, and the
// derivative. The gradient is composed of differentiable operators, so second derivatives follow.
#include <torch_musa/ops/swiglu_native.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/ported/SwiGlu.h"

namespace at::musa {
namespace {

struct SwiGluFunction : torch::autograd::Function<SwiGluFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input) {
    context->save_for_backward({input});
    const at::AutoDispatchBelowADInplaceOrView below;
    // Through the dispatcher, not straight to the kernel: modes and counters see the call.
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("musa::swiglu", "")
                               .typed<Tensor(const Tensor&)>();
    return op.call(input);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const Tensor input = context->get_saved_variables()[0];
    const SymInt width = input.sym_size(-1) / 2;
    const Tensor gate = input.narrow_symint(-1, 0, width);
    const Tensor up = input.narrow_symint(-1, width, width);
    const Tensor sigmoid = at::sigmoid(gate), value = gate * sigmoid;
    // silu'(x) = s(x) + x s(x) (1 - s(x)) = s(x) + silu(x) (1 - s(x))
    const Tensor slope = sigmoid + value * (1 - sigmoid);
    return {at::cat({grads[0] * up * slope, grads[0] * value}, -1)};
  }
};

}  // namespace

Tensor SwiGluAutograd(const Tensor& input) { return SwiGluFunction::apply(input); }

Tensor SwiGluMeta(const Tensor& input) {
  return at::empty_symint(swiglu_symbolic_sizes(input), input.options());
}

}  // namespace at::musa
