// Where a ported source looks for ATen/cuda/CUDAEvent.h.
#pragma once

#include <ATen/musa/MUSAContext.h>
#include <c10/musa/MUSAEvent.h>
#include <c10/musa/MUSAGuard.h>

namespace at::musa {

using MUSAEvent = c10::musa::MUSAEvent;

}  // namespace at::musa
