// Memory that a thread's allocations of the right size are served with.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/FunctionRef.h>

namespace musa::dnn::internal {

// While `body` runs, take_lent() gives this thread the memory of `places`, until body calls
// end_loan(). Throws std::runtime_error where something has not given its part back by the end.
void with_loan(at::TensorList places, c10::function_ref<void()> body);

// From here on the loan of this thread gives nothing.
void end_loan();

// The memory of a place that has exactly so many bytes, each once; null where none is left, or
// where `may_be_kept` says that who asks for so many may never give them back.
c10::DataPtr take_lent(size_t bytes, bool (*may_be_kept)(size_t) = nullptr);

}  // namespace musa::dnn::internal
