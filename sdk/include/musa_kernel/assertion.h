// assert() in a kernel: the text that CUDA prints, then the device has musaErrorAssert. As there,
// NDEBUG turns it off.
#pragma once

// The declaration of what assert calls, also where NDEBUG is set; then assert itself, as NDEBUG
// wants it.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <assert.h>
#pragma pop_macro("NDEBUG")
#include <assert.h>

#include <cstdio>

#include "index.h"

namespace musa::host {

[[noreturn]] inline void assertion_failed(const char* expression, const char* file,
                                          unsigned int line, const char* function) {
  if (!inside_kernel()) __assert_fail(expression, file, line, function);
  std::fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
               file, line, function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
               threadIdx.z, expression);
  kernel_fault(musaErrorAssert, "an assertion failed");
}

}  // namespace musa::host

// What glibc's assert calls; assert.h declares it only once, above, however often it is included.
#define __assert_fail ::musa::host::assertion_failed

[[noreturn]] inline void __trap() {
  ::musa::host::kernel_fault(musaErrorLaunchFailure, "__trap() was called");
}
