// The host has none: the CPU's flash attention takes no grouped heads and no seed.
#include "FlashKernel.h"

#include "Internal.h"

namespace musa::dnn::internal::target {

bool has_flash_kernel(const Flash& /*f*/) { return false; }

void flash_kernel(const Flash& /*f*/, const at::Tensor& /*out*/, const at::Tensor& /*lse*/) {
  refuse(Status::INTERNAL_ERROR, "no flash kernel");
}

void flash_kernel_backward(const Flash& /*f*/, const at::Tensor& /*out*/, const at::Tensor& /*lse*/,
                           const at::Tensor& /*grad_out*/, const AttentionGradients& /*grads*/) {
  refuse(Status::INTERNAL_ERROR, "no flash kernel");
}

}  // namespace musa::dnn::internal::target
