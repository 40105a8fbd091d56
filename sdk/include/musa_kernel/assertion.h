// assert() in a kernel: the text that CUDA prints, then the device has musaErrorAssert. As there,
// NDEBUG turns it off.
#pragma once

#include "index.h"

extern "C" MUSART_API void musa_host_assert_fail(const char* expression, const char* file,
                                                 unsigned int line, const char* function) noexcept
    __attribute__((__noreturn__));

// What the C library's assert calls. Of the same type, since other headers declare it, too.
#define __assert_fail musa_host_assert_fail
#include <assert.h>

[[noreturn]] inline void __trap() {
  ::musa::host::kernel_fault(musaErrorLaunchFailure, "__trap() was called");
}
