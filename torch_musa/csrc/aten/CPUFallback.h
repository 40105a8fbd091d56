#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>

namespace at::musa {

/// Computes the operator on the CPU and copies the results back: entries whose kernel is
/// `cpu_fallback`. Counted.
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// The same for an operator that has no entry at all. Counted, one warning per operator and
/// process, and an error instead when the environment says TORCH_MUSA_FALLBACK=error.
void cpu_fallback_unlisted(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Calls so far by operator ("sinc.out"; see op_list_name), listed and unlisted together.
std::map<std::string, int64_t> fallback_counts();
void reset_fallback_counts();

}  // namespace at::musa
