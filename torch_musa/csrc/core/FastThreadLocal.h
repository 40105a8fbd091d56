#pragma once

/// For thread-local variables that every call of an operator reads: at a fixed offset from the
/// thread's pointer instead of behind a call. The space for such variables in a library that is
/// loaded later is small, so only for a few bytes each.
#define MUSA_FAST_TLS __attribute__((tls_model("initial-exec")))
