#include "torch_musa/csrc/aten/OpCounter.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "torch_musa/csrc/aten/OpName.h"

namespace at::musa {
namespace {

using Clock = std::chrono::steady_clock;

struct State {
  std::mutex mutex;
  std::map<std::string, OpCalls> calls;
  std::map<std::string, int64_t> host_calls;
  int running = 0;
  std::optional<CallbackHandle> callback;
};

State& state() {
  static auto* instance = new State();
  return *instance;
}

/// The dtype of the first musa tensor in a value, nullopt where it holds none.
std::optional<ScalarType> musa_dtype(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    const bool on_musa = tensor.defined() && tensor.device().type() == DeviceType::PrivateUse1;
    return on_musa ? std::make_optional(tensor.scalar_type()) : std::nullopt;
  }
  if (value.isList()) {  // of tensors, or of optional ones
    for (const c10::IValue& item : value.toListRef()) {
      if (!item.isTensor() && !item.isNone()) break;  // of numbers
      if (auto dtype = musa_dtype(item)) return dtype;
    }
  }
  return std::nullopt;
}

template <typename Values>
std::optional<ScalarType> first_musa_dtype(const Values& values) {
  for (const c10::IValue& value : values) {
    if (auto dtype = musa_dtype(value)) return dtype;
  }
  return std::nullopt;
}

/// Whether a value holds data on the CPU. One element is a number, which kernels do read there.
bool holds_host_data(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    return tensor.defined() && tensor.device().is_cpu() && tensor.layout() == kStrided &&
           tensor.numel() > 1;
  }
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (!item.isTensor() && !item.isNone()) break;  // of numbers
      if (holds_host_data(item)) return true;
    }
  }
  return false;
}

template <typename Values>
bool any_holds_host_data(const Values& values) {
  for (const c10::IValue& value : values) {
    if (holds_host_data(value)) return true;
  }
  return false;
}

// The calls in progress on a thread, outermost first.
struct Frame {
  const void* call;
  Clock::duration counted_inside{};
  bool on_musa = false;
  bool given_host_data = false;
};
thread_local std::vector<Frame> frames;

const Frame* outermost_on_musa() {
  for (const Frame& frame : frames) {
    if (frame.on_musa) return &frame;
  }
  return nullptr;
}

// Work on the CPU inside an operator on musa that had none of its data.
void count_on_host(const RecordFunction& function) {
  const auto name = function.operator_name();
  if (!name.has_value()) return;
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  ++s.host_calls[op_list_name(*name)];
}

// Operands are alive only when the call begins, results only when it ends.
struct Call : public ObserverContext {
  std::optional<ScalarType> dtype;
  Clock::time_point entered;  // before what the counter itself costs
  Clock::time_point began;    // after it
};

std::unique_ptr<ObserverContext> on_begin(const RecordFunction& function) {
  const auto entered = Clock::now();
  auto call = std::make_unique<Call>();
  call->dtype = first_musa_dtype(function.inputs());
  const Frame* outermost = outermost_on_musa();
  const bool on_musa = call->dtype.has_value();
  const bool host_data =
      (on_musa ? outermost == nullptr : outermost != nullptr && !outermost->given_host_data) &&
      any_holds_host_data(function.inputs());
  if (host_data && !on_musa) count_on_host(function);
  frames.push_back({call.get(), {}, on_musa, host_data});
  call->entered = entered;
  call->began = Clock::now();
  return call;
}

/// Takes the call off this thread's stack and says how long counted operators ran inside it. Calls
/// above it ended without a word; one that began on another thread is not there.
Clock::duration pop(const Call* call) {
  for (size_t depth = frames.size(); depth-- > 0;) {
    if (frames[depth].call == call) {
      const auto inside = frames[depth].counted_inside;
      frames.resize(depth);
      return inside;
    }
  }
  return {};
}

void on_end(const RecordFunction& function, ObserverContext* context) {
  const auto ended = Clock::now();
  auto* call = static_cast<Call*>(context);
  const auto inside = pop(call);
  if (!call->dtype.has_value()) call->dtype = first_musa_dtype(function.outputs());
  const auto name = function.operator_name();
  if (!call->dtype.has_value() || !name.has_value()) {
    // Time on the CPU belongs to the operator that went there; only what is counted is set apart.
    if (!frames.empty()) frames.back().counted_inside += inside;
    return;
  }
  {
    const auto self = ended - call->began - inside;
    State& s = state();
    const std::lock_guard<std::mutex> lock(s.mutex);
    OpCalls& calls = s.calls[op_list_name(*name)];
    ++calls.calls;
    ++calls.dtypes[*call->dtype];
    calls.self_nanoseconds += std::chrono::nanoseconds(self).count();
  }
  if (!frames.empty()) frames.back().counted_inside += Clock::now() - call->entered;
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

std::map<std::string, int64_t> OpCounter::host_calls() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  return s.host_calls;
}

std::map<std::string, OpCalls> OpCounter::calls() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  return s.calls;
}

}  // namespace at::musa
