// What musaMalloc has given out. muDNN asks of every operand whether the device can reach it, and
// asking the driver takes longer than issuing a small operator.
#pragma once

#include <cstddef>

#include "Api.h"

namespace musa::cuda {

MUSART_LOCAL void remember_range(const void* begin, size_t bytes);
MUSART_LOCAL void forget_range(const void* begin);

// Whether all of [pointer, pointer + bytes) lies in one block of musaMalloc.
MUSART_LOCAL bool is_in_range(const void* pointer, size_t bytes);

}  // namespace musa::cuda
