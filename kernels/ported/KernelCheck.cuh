// Checks inside kernels. Where kernels run on the host they throw what the CPU's kernels throw; a
// device can only stop.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#ifdef __CUDA_ARCH__
#define KERNEL_CHECK(CONDITION, ...) CUDA_KERNEL_ASSERT(CONDITION)
#define KERNEL_CHECK_INDEX(CONDITION, ...) CUDA_KERNEL_ASSERT(CONDITION)
#else
#define KERNEL_CHECK(CONDITION, ...) TORCH_CHECK(CONDITION, __VA_ARGS__)
#define KERNEL_CHECK_INDEX(CONDITION, ...) TORCH_CHECK_INDEX(CONDITION, __VA_ARGS__)
#endif
