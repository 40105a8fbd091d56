#include "torch_musa/csrc/aten/OpCounter.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "torch_musa/csrc/aten/OpName.h"

namespace at::musa {
namespace {

struct State {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
  int running = 0;
  std::optional<CallbackHandle> callback;
};

State& state() {
  static auto* instance = new State();
  return *instance;
}

bool is_musa(const Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == DeviceType::PrivateUse1;
}

bool holds_musa_tensor(const c10::IValue& value) {
  if (value.isTensor()) {
    return is_musa(value.toTensor());
  }
  if (value.isTensorList()) {
    const auto list = value.toTensorVector();
    return std::any_of(list.begin(), list.end(), is_musa);
  }
  if (value.isList()) {  // optional tensors, for one
    const auto list = value.toListRef();
    return std::any_of(list.begin(), list.end(), holds_musa_tensor);
  }
  return false;
}

// Operands are alive only when the call begins, results only when it ends.
struct Call : public ObserverContext {
  bool on_musa = false;
};

std::unique_ptr<ObserverContext> on_begin(const RecordFunction& function) {
  auto call = std::make_unique<Call>();
  const auto inputs = function.inputs();
  call->on_musa = std::any_of(inputs.begin(), inputs.end(), holds_musa_tensor);
  return call;
}

void on_end(const RecordFunction& function, ObserverContext* context) {
  bool on_musa = static_cast<Call*>(context)->on_musa;
  if (!on_musa) {
    const auto& outputs = function.outputs();
    on_musa = std::any_of(outputs.begin(), outputs.end(), holds_musa_tensor);
  }
  const auto name = function.operator_name();
  if (on_musa && name.has_value()) {
    State& s = state();
    const std::lock_guard<std::mutex> lock(s.mutex);
    ++s.counts[op_list_name(*name)];
  }
}

}  // namespace

void OpCounter::start() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (s.running++ == 0) {
    s.callback = addGlobalCallback(RecordFunctionCallback(&on_begin, &on_end)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({RecordScope::FUNCTION}));
  }
}

void OpCounter::stop() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  TORCH_CHECK(s.running > 0, "OpCounter::stop without a start");
  if (--s.running == 0) {
    removeCallback(*s.callback);
    s.callback.reset();
  }
}

std::map<std::string, int64_t> OpCounter::counts() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  return s.counts;
}

}  // namespace at::musa
