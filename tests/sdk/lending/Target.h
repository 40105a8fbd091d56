// A target that lends, for the test: the CPU, whose allocator asks for lent memory first.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

namespace musa::dnn::internal::target {

inline constexpr bool kLends = true;
void lend(at::TensorList places, c10::function_ref<void()> body);
void stop_lending();

}  // namespace musa::dnn::internal::target
