#include "torch_musa/csrc/aten/CPUFallback.h"

#include <ATen/native/CPUFallback.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>

#include "torch_musa/csrc/aten/FallbackCounts.h"
#include "torch_musa/csrc/aten/OpName.h"

namespace at::musa {
namespace {

class Counter {
 public:
  void count(const std::string& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_[op];
  }
  /// True the first time it is asked for `op`, whatever the counts have been reset to since.
  bool first_warning(const std::string& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return warned_.insert(op).second;
  }
  std::map<std::string, int64_t> snapshot() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
  }
  void reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
  std::set<std::string> warned_;
};

Counter& counter() {
  static auto* instance = new Counter();
  return *instance;
}

bool fallback_is_forbidden() {
  static const bool forbidden = [] {
    const char* value = std::getenv("TORCH_MUSA_FALLBACK");
    const std::string_view mode = value == nullptr ? "" : value;
    // A misspelt "error" must not quietly permit what it was meant to forbid.
    TORCH_CHECK(
        mode.empty() || mode == "error" || mode == "warn", "TORCH_MUSA_FALLBACK=", mode,
        " is neither 'error' (operators without a kernel raise) nor 'warn' (they run on the "
        "CPU, the default).");
    return mode == "error";
  }();
  return forbidden;
}

/// Some operators exist for accelerators only, such as _thnn_fused_lstm_cell.
bool has_cpu_kernel(const c10::OperatorHandle& op) {
  // Operands of another layout bring their own key, whose kernel then serves.
  for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::SparseCPU,
                         c10::DispatchKey::SparseCsrCPU, c10::DispatchKey::QuantizedCPU,
                         c10::DispatchKey::MkldnnCPU, c10::DispatchKey::NestedTensorCPU}) {
    if (op.hasComputedKernelForDispatchKey(key)) return true;
  }
  return false;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // A copy in place of a view would make in-place writes vanish, so a view that reaches this is an
  // error.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

}  // namespace

void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  counter().count(op_list_name(op.operator_name()));
  run_on_cpu(op, stack);
}

void cpu_fallback_unlisted(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = op_list_name(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(
      !fallback_is_forbidden(), "The operator '", name,
      "' has no kernel for the musa device, and TORCH_MUSA_FALLBACK=error forbids running it on "
      "the "
      "CPU. Add an entry for it to musa_functions.yaml (see docs/add_an_op.md).");
  TORCH_CHECK_NOT_IMPLEMENTED(has_cpu_kernel(op), "The operator '", name,
                              "' has no kernel for the musa device, and PyTorch has none for the "
                              "CPU to fall back to. Add an "
                              "entry for it to musa_functions.yaml (see docs/add_an_op.md).");
  // On the CPU it would draw from the CPU's generator: torch.musa.manual_seed would have no say.
  TORCH_CHECK_NOT_IMPLEMENTED(!op.hasTag(at::Tag::nondeterministic_seeded), "The operator '", name,
                              "' draws random numbers and has no kernel for the musa device, so it "
                              "cannot run there. Add an "
                              "entry for it to musa_functions.yaml (see docs/add_an_op.md).");
  counter().count(name);
  if (counter().first_warning(name)) {
    TORCH_WARN("The operator '", name,
               "' has no kernel for the musa device and runs on the CPU: its operands are copied "
               "there and the results back. torch.musa.fallback_counts() counts these calls; "
               "TORCH_MUSA_FALLBACK=error turns them into errors.");
  }
  run_on_cpu(op, stack);
}

void count_cpu_fallback(const std::string& op) { counter().count(op); }

std::map<std::string, int64_t> fallback_counts() { return counter().snapshot(); }

void reset_fallback_counts() { counter().reset(); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback_unlisted>());
}

}  // namespace at::musa
