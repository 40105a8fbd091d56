// torch.autocast("musa"): which operators compute in the lower precision, which in float32.
//
// PyTorch publishes the lists but leaves it to a PrivateUse1 backend to register them. The kernels
// here are boxed: they cast operands on the stack and call the operator again below autocast, so
// one function serves every operator of a policy, whatever its signature.

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

namespace at::musa {
namespace {

using torch::jit::Stack;

constexpr DeviceType kDevice = DeviceType::PrivateUse1;
using NoAutocast = c10::impl::ExcludeDispatchKeyGuard;
constexpr c10::DispatchKey kKey = c10::DispatchKey::AutocastPrivateUse1;

/// "addmm" for (addmm), "bmm.out" for (bmm, out): what the lists' macros are given, as the
/// operator's name.
std::string op_name(std::string arguments) {
  arguments.erase(std::remove(arguments.begin(), arguments.end(), ' '), arguments.end());
  std::replace(arguments.begin(), arguments.end(), ',', '.');
  return arguments;
}

template <typename F>
void for_each_operand(const c10::OperatorHandle& op, Stack* stack, const F& f) {
  const size_t count = op.schema().arguments().size();
  for (auto it = stack->end() - static_cast<int64_t>(count); it != stack->end(); ++it) {
    f(*it);
  }
}

/// Casts the floating-point operands on the device; weights are cast once and kept while autocast
/// is on.
void cast_operands(const c10::OperatorHandle& op, Stack* stack, ScalarType to) {
  for_each_operand(op, stack, [to](c10::IValue& value) {
    if (value.isTensor()) {
      value = at::autocast::cached_cast(to, value.toTensor(), kDevice);
    } else if (value.isTensorList()) {
      value = at::autocast::cached_cast(to, TensorList(value.toTensorVector()), kDevice);
    }
  });
}

void lower_precision(const c10::OperatorHandle& op, Stack* stack) {
  const NoAutocast guard(kKey);
  cast_operands(op, stack, at::autocast::get_lower_precision_fp_from_device_type(kDevice));
  op.callBoxed(stack);
}

void float32(const c10::OperatorHandle& op, Stack* stack) {
  const NoAutocast guard(kKey);
  cast_operands(op, stack, kFloat);
  op.callBoxed(stack);
}

/// Operators with a dtype argument (sum, softmax): asked for float32 where the caller asked for
/// nothing.
void float32_result(const c10::OperatorHandle& op, Stack* stack) {
  const NoAutocast guard(kKey);
  const auto& arguments = op.schema().arguments();
  const auto first = stack->end() - static_cast<int64_t>(arguments.size());
  const bool eligible =
      first->isTensor() && at::autocast::is_autocast_eligible(first->toTensor(), kDevice);
  for (size_t i = 0; eligible && i < arguments.size(); ++i) {
    c10::IValue& value = *(first + static_cast<int64_t>(i));
    if (arguments[i].name() == "dtype" && value.isNone()) {
      value = static_cast<int64_t>(kFloat);
    }
  }
  op.callBoxed(stack);
}

/// Operators that need operands of one dtype: the widest among them.
void promote(const c10::OperatorHandle& op, Stack* stack) {
  const NoAutocast guard(kKey);
  ScalarType to = at::autocast::get_lower_precision_fp_from_device_type(kDevice);
  for_each_operand(op, stack, [&to](const c10::IValue& value) {
    if (value.isTensor()) {
      to = at::autocast::prioritize(to, value.toTensor(), kDevice);
    } else if (value.isTensorList()) {
      to = at::autocast::prioritize(to, TensorList(value.toTensorVector()), kDevice);
    }
  });
  cast_operands(op, stack, to);
  op.callBoxed(stack);
}

[[noreturn]] void unsafe(const c10::OperatorHandle& op, Stack* /*stack*/) {
  TORCH_CHECK(false, op.operator_name().name,
              " is unsafe to autocast: probabilities in the lower precision lose their logarithm. "
              "Use binary_cross_entropy_with_logits, or BCEWithLogitsLoss, instead.");
}

template <c10::KernelFunction::BoxedKernelFunction* policy>
void add(torch::Library& m, const char* arguments) {
  m.impl(op_name(arguments).c_str(), torch::CppFunction::makeFromBoxedFunction<policy>());
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define ADD_LOWER_PRECISION(...) add<&lower_precision>(m, #__VA_ARGS__);
  AT_FORALL_LOWER_PRECISION_FP(ADD_LOWER_PRECISION)
#undef ADD_LOWER_PRECISION
#define ADD_FLOAT32(...) add<&float32>(m, #__VA_ARGS__);
  AT_FORALL_FP32(ADD_FLOAT32)
#undef ADD_FLOAT32
#define ADD_FLOAT32_RESULT(...) add<&float32_result>(m, #__VA_ARGS__);
  AT_FORALL_FP32_SET_OPT_DTYPE(ADD_FLOAT32_RESULT)
#undef ADD_FLOAT32_RESULT
#define ADD_PROMOTE(...) add<&promote>(m, #__VA_ARGS__);
  AT_FORALL_PROMOTE(ADD_PROMOTE)
#undef ADD_PROMOTE
  // PyTorch's list hands these over to an overload with a dtype, which a cast of the operand does
  // as well.
  add<&float32>(m, "norm.Scalar");
  add<&float32>(m, "norm.ScalarOpt_dim");
  add<&unsafe>(m, "binary_cross_entropy");
}

}  // namespace at::musa
