#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

namespace at::musa {

/// New memory on the device of `options` (without an index: the current one), straight from the
/// allocator: what at::empty does once the dispatcher has found the backend. Throws for layouts
/// other than strided and for pinned memory.
Tensor empty_musa(IntArrayRef size, const TensorOptions& options);
Tensor empty_strided_musa(IntArrayRef size, IntArrayRef stride, const TensorOptions& options);

}  // namespace at::musa
