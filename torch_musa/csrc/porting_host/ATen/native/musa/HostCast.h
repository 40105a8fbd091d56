// Conversion of runs of elements between dtypes: the one place on the host where dynamic casting is
// compiled.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace at::native::host_loops {

/// Whether values of `type` can be converted to and from other dtypes (bits and quantized types
/// cannot).
bool is_castable(c10::ScalarType type);

/// Converts `n` elements as c10::convert does. Strides are in bytes; source and destination must
/// not overlap unless they are the same run with the same stride and element size.
void cast_run(c10::ScalarType to, char* out, int64_t out_stride, c10::ScalarType from,
              const char* in, int64_t in_stride, int64_t n);

}  // namespace at::native::host_loops
