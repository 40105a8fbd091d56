#pragma once

#include <c10/util/Exception.h>

namespace at::musa {

/// Stands where the computation of a kernel is still to be written, in the sources that `opgen new`
/// makes: throws NotImplementedError, naming the file. `kernel` is the implementation, function,
/// meta function or DispatchStub that is unfinished; opgen reads it and does not count the operator
/// as done.
[[noreturn]] inline void NotWritten(const char* kernel, const char* op, const char* file) {
  C10_THROW_ERROR(NotImplementedError,
                  c10::str(op, ": ", kernel, " is only a skeleton yet; write it in ", file));
}

}  // namespace at::musa
