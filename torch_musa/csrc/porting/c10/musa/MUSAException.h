// Where a ported source looks for c10/cuda/CUDAException.h.
#pragma once

#include <c10/musa/MUSAMacros.h>

#include "torch_musa/csrc/core/MUSAException.h"

/// Marks an error that the caller deals with itself.
#define C10_MUSA_ERROR_HANDLED(EXPR) (EXPR)

/// Drops an error, and the one that the runtime remembers for it; a warning says so.
#define C10_MUSA_IGNORE_ERROR(EXPR)                     \
  do {                                                  \
    const musaError_t musa_error_ = (EXPR);             \
    if (C10_UNLIKELY(musa_error_ != musaSuccess)) {     \
      (void)musaGetLastError();                         \
      ::c10::musa::warn_musa_error(musa_error_, #EXPR); \
    }                                                   \
  } while (0)

/// Forgets the last error.
#define C10_MUSA_CLEAR_ERROR() (void)musaGetLastError()
