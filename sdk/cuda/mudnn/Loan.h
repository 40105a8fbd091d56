// Memory that a thread's allocations of the right size are served with.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/FunctionRef.h>

namespace musa::dnn::internal {

// While `body` runs, take() gives this thread the memory of `places`. Throws std::runtime_error
// where something has not given its part back by the end.
void with_loan(at::TensorList places, c10::function_ref<void()> body);

// The memory of a place that has exactly so many bytes, each once; null where none is left.
c10::DataPtr take_lent(size_t bytes);

}  // namespace musa::dnn::internal
