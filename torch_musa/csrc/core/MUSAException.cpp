#include "torch_musa/csrc/core/MUSAException.h"

#include <c10/util/StringUtil.h>

#include "torch_musa/csrc/core/MUSAFunctions.h"

namespace c10::musa {

void throw_musa_error(musaError_t error, const char* expression, const char* function,
                      const char* file, uint32_t line) {
  // The error is sticky in the runtime; a later launch check must not report it a second time.
  static_cast<void>(musaGetLastError());
  // Every call fails in a forked child; what to do about it helps more than which call it was.
  if (in_bad_fork()) {
    ensure_initialized(0);
  }
  c10::detail::torchCheckFail(function, file, line,
                              c10::str("MUSA error: ", musaGetErrorString(error), " (",
                                       musaGetErrorName(error), " from ", expression, ")"));
}

void warn_musa_error(musaError_t error, const char* expression) noexcept {
  static_cast<void>(musaGetLastError());
  try {
    TORCH_WARN("MUSA warning: ", musaGetErrorString(error), " (from ", expression, ")");
  } catch (...) {  // warnings may be turned into errors; a destructor has nowhere to report them
  }
}

}  // namespace c10::musa
