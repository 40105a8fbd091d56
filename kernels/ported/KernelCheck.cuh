// Checks inside kernels. Where kernels run on the host they throw what the CPU's kernels throw; a
// device can only stop. (Its compiler reads a kernel twice, for the host and for the device, and a
// lambda must capture the same in both: so the words of the message are in neither.)
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#ifdef __MUSA__
#define KERNEL_CHECK(CONDITION, ...) CUDA_KERNEL_ASSERT(CONDITION)
#define KERNEL_CHECK_INDEX(CONDITION, ...) CUDA_KERNEL_ASSERT(CONDITION)
#else
#define KERNEL_CHECK(CONDITION, ...) TORCH_CHECK(CONDITION, __VA_ARGS__)
#define KERNEL_CHECK_INDEX(CONDITION, ...) TORCH_CHECK_INDEX(CONDITION, __VA_ARGS__)
#endif
