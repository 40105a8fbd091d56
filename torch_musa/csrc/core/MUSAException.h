#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>
#include <musa_runtime.h>

namespace c10::musa {

/// Throws c10::Error with the runtime's own text for `error`. Out of line so that a check costs a
/// compare and a branch.
[[noreturn]] void throw_musa_error(musaError_t error, const char* expression, const char* function,
                                   const char* file, uint32_t line);

/// Warns instead of throwing: for destructors and for exit handlers, where the driver may be gone
/// already.
void warn_musa_error(musaError_t error, const char* expression) noexcept;

}  // namespace c10::musa

#define C10_MUSA_CHECK(EXPR)                                                \
  do {                                                                      \
    const musaError_t musa_error_ = (EXPR);                                 \
    if (C10_UNLIKELY(musa_error_ != musaSuccess)) {                         \
      ::c10::musa::throw_musa_error(musa_error_, #EXPR, __func__, __FILE__, \
                                    static_cast<uint32_t>(__LINE__));       \
    }                                                                       \
  } while (0)

#define C10_MUSA_CHECK_WARN(EXPR)                       \
  do {                                                  \
    const musaError_t musa_error_ = (EXPR);             \
    if (C10_UNLIKELY(musa_error_ != musaSuccess)) {     \
      ::c10::musa::warn_musa_error(musa_error_, #EXPR); \
    }                                                   \
  } while (0)

// A launch reports a bad configuration through the sticky error, not through a return value.
#define C10_MUSA_KERNEL_LAUNCH_CHECK() C10_MUSA_CHECK(musaGetLastError())
