#pragma once

#include <c10/util/Exception.h>

namespace at::musa {

/// Stands where the computation of a kernel is still to be written, in the sources that `opgen new`
/// makes: throws NotImplementedError, naming the file. `kernels` are the functions,
/// implementations, meta functions or DispatchStubs that are unfinished, separated by commas; opgen
/// reads them and does not count the operator as done.
[[noreturn]] inline void NotWritten(const char* kernels, const char* op, const char* file) {
  C10_THROW_ERROR(NotImplementedError,
                  c10::str(op, ": ", kernels, " is still to be written, in ", file));
}

}  // namespace at::musa
