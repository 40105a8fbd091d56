// Memory of a muDNN call's results, lent to ATen's operators. Many of them give tensors of their
// own, and bringing those to where the call wants them would be one more pass over them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

namespace musa::dnn::internal::target {

inline constexpr bool kLends = true;

// While `body` runs, CUDA's allocator serves this thread's request for exactly as many bytes as one
// of `places` has with that memory, each once; others as ever. Throws std::runtime_error where
// something goes on using lent memory.
void lend(at::TensorList places, c10::function_ref<void()> body);
// Called by `body`: no more of it from here on.
void stop_lending();

}  // namespace musa::dnn::internal::target
