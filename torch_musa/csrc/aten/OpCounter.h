#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>

namespace at::musa {

/// What a counter has seen of one operator.
struct OpCalls {
  int64_t calls = 0;
  /// Host time inside the operator, less that inside the counted operators it called.
  int64_t self_nanoseconds = 0;
  /// Calls by the dtype of the first musa tensor among the operands, or else the results.
  std::map<c10::ScalarType, int64_t> dtypes;
};

/// Counts and times every operator that the dispatcher calls with a musa tensor among its operands
/// or results, on all threads (autograd's too), while at least one counter is running. Costs
/// nothing while none is.
///
/// A composite operator and those it is made of are all counted; names are those of op_list_name.
/// Host time is the time of a kernel where launches block (MUSA_LAUNCH_BLOCKING=1), and that of
/// launching it where they do not.
class OpCounter {
 public:
  /// Starts one more counter; call stop() as often.
  static void start();
  static void stop();
  /// Calls since the process began, over the times in which a counter was running.
  static std::map<std::string, OpCalls> calls();
  /// The same for calls on tensors of the CPU, of more than one element, that an operator on musa
  /// tensors made on its way though nobody had given it one: work that was carried off the device.
  static std::map<std::string, int64_t> host_calls();
};

}  // namespace at::musa
