// A target's own kernel for flash attention, where ATen has one for its device (FlashKernel.cpp of
// the target). What it refuses is composed (Flash.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include "Flash.h"

namespace musa::dnn::internal::target {

// Whether it takes the call: the same answer in both directions.
bool has_flash_kernel(const Flash& f);

void flash_kernel(const Flash& f, const at::Tensor& out, const at::Tensor& lse);
void flash_kernel_backward(const Flash& f, const at::Tensor& out, const at::Tensor& lse,
                           const at::Tensor& grad_out, const AttentionGradients& grads);

}  // namespace musa::dnn::internal::target
