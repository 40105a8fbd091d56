// Plain functions for the unstructured rules, under upstream's names of operators and under ours.
#include <torch_musa/ops/cat_native.h>
#include <torch_musa/ops/celu_native.h>
#include <torch_musa/ops/describe_native.h>
#include <torch_musa/ops/dot_native.h>
#include <torch_musa/ops/erfc_native.h>
#include <torch_musa/ops/grown_native.h>
#include <torch_musa/ops/new_empty_strided_native.h>
#include <torch_musa/ops/on_cpu_native.h>
#include <torch_musa/ops/pair_native.h>
#include <torch_musa/ops/round_native.h>
#include <torch_musa/ops/scale_native.h>
#include <torch_musa/ops/trace_native.h>
#include <torch_musa/ops/tril_native.h>
#include <torch_musa/ops/vdot_native.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <ATen/ops/round.h>
#include <ATen/ops/tril.h>
#include <torch/csrc/autograd/custom_function.h>

#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"

namespace at::musa {
namespace {

Tensor marked(const Tensor& like, double value) {
  return at::full({1}, value, TensorOptions(kFloat).device(like.device()));
}

struct StraightThrough : torch::autograd::Function<StraightThrough> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& self) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return at::round(self);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    return {grads[0]};
  }
};

}  // namespace

Tensor RuleTrilFunctional(const Tensor& self, int64_t diagonal) {
  TORCH_CHECK(self.dim() >= 2, "rule: the functional overload's own kernel");
  return at::tril(self.cpu(), diagonal).to(self.device());
}

Tensor RuleCat(const ITensorListRef& tensors, int64_t dim) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.cpu());
  TORCH_CHECK(parts.size() != 1, "rule: cat of one tensor");
  return at::cat(parts, dim).to(kMUSA);
}

Tensor& RuleCatOut(const ITensorListRef& tensors, int64_t dim, Tensor& out) {
  const Tensor result = RuleCat(tensors, dim);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor RuleDot(const Tensor& self, const Tensor& tensor) {
  return marked(self, c10::musa::current_device());
}

Tensor RuleVdot(const Tensor& self, const Tensor& other) {
  return marked(self, c10::musa::current_device());
}

Tensor RuleNewEmptyStrided_symint(const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride,
                                  std::optional<ScalarType> dtype, std::optional<Layout> layout,
                                  std::optional<Device> device, std::optional<bool> pin_memory) {
  return at::empty_strided_symint(size, stride, self.options().dtype(dtype).device(device))
      .fill_(static_cast<double>(size.size() * 10 + stride.size()));
}

Tensor& RuleCeluOut(const Tensor& self, const Scalar& alpha, Tensor& out) {
  return out.copy_(at::celu(self.cpu(), alpha));
}

Tensor RuleErfcSparse(const Tensor& self) { return marked(self, 1); }
Tensor RuleErfcOther(const Tensor& self) { return marked(self, 2); }

Tensor RuleRoundAutograd(const Tensor& self) { return StraightThrough::apply(self); }

Tensor RuleTraceOfThePast(const Tensor& self) { return marked(self, -1); }
Tensor RuleTrace(const Tensor& self) { return marked(self, 1); }

Tensor& RuleScale_(Tensor& self, TensorList by, std::optional<double> factor, bool negate) {
  for (const Tensor& each : by) self.mul_(each);
  return self.mul_(factor.value_or(1) * (negate ? -1 : 1));
}

Tensor& RuleScaleMeta_(Tensor& self, TensorList by, std::optional<double> factor, bool negate) {
  return self;
}

std::tuple<Tensor&, Tensor&> RulePairOut(const Tensor& self, IntArrayRef shift, Tensor& first,
                                         Tensor& second) {
  at::native::resize_output(first, self.sizes());
  at::native::resize_output(second, self.sizes());
  first.copy_(self + shift[0]);
  second.copy_(self + shift[1]);
  return {first, second};
}

std::tuple<Tensor, int64_t> RuleDescribe(const std::optional<Tensor>& self, ArrayRef<Scalar> limits,
                                         std::optional<ScalarType> dtype, c10::string_view mode) {
  const Tensor out = at::full({1}, static_cast<double>(limits.size()),
                              TensorOptions(dtype.value_or(kFloat))
                                  .device(self.has_value() ? self->device() : Device(kCPU)));
  return {out, mode == "plain" ? 0 : 1};
}

Tensor RuleGrown_symint(const Tensor& self, SymIntArrayRef size) {
  return at::empty_symint(size, self.options());
}

Tensor RuleOnCpu(const Tensor& self) { return self + 1; }

}  // namespace at::musa
