#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace at::musa {

/// Counts every operator that the dispatcher calls with a musa tensor among its operands or
/// results, on all threads (autograd's too), while at least one counter is running. Costs nothing
/// while none is.
///
/// A composite operator and those it is made of are all counted; names are those of op_list_name.
class OpCounter {
 public:
  /// Starts one more counter; call stop() as often.
  static void start();
  static void stop();
  /// Calls since the process began, over the times in which a counter was running.
  static std::map<std::string, int64_t> counts();
};

}  // namespace at::musa
