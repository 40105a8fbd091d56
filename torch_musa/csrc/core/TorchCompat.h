#pragma once

// Everything that differs between the PyTorch versions one source tree serves (2.9 to 2.15). A
// version test anywhere else is a mistake: give the difference a name here.

#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <torch/version.h>
#endif

#define MUSA_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||       \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// MetaBase::set_output_raw_strided lost its trailing DimnameList in 2.12. An override writes
// `TensorOptions options MUSA_SET_OUTPUT_NAMES` and never uses the names.
#if MUSA_TORCH_AT_LEAST(2, 12)
#define MUSA_SET_OUTPUT_NAMES
#else
#define MUSA_SET_OUTPUT_NAMES , at::DimnameList /*names*/ = {}
#endif

// What a device says about its dtypes (torch.accelerator.get_device_capability).
#if __has_include(<c10/core/DeviceCapability.h>)
#define MUSA_HAS_DEVICE_CAPABILITY 1
#else
#define MUSA_HAS_DEVICE_CAPABILITY 0
#endif

// cuBLAS's handle with the workspace that ATen's own products have (target cuda): from 2.15 the
// plain one comes with the library's.
#if MUSA_TORCH_AT_LEAST(2, 15)
#define MUSA_CUBLAS_HANDLE_OF_ATEN at::cuda::getCurrentCUDABlasHandleWithWorkspace
#else
#define MUSA_CUBLAS_HANDLE_OF_ATEN at::cuda::getCurrentCUDABlasHandle
#endif

// gpu_kernel_opaque, in the device headers of the wheel.
#define MUSA_HAS_GPU_KERNEL_OPAQUE MUSA_TORCH_AT_LEAST(2, 13)

// Whether clamp fills with NaN where its only bound is NaN; clamp_min, clamp_max and clamp with two
// bounds do so in every release.
#define MUSA_CLAMP_TAKES_ONE_NAN MUSA_TORCH_AT_LEAST(2, 12)

// torch.accelerator.Graph (from 2.12), behind which each backend registers its graphs.
#if __has_include(<ATen/core/GraphImplInterface.h>)
#define MUSA_HAS_GRAPH_INTERFACE 1
#else
#define MUSA_HAS_GRAPH_INTERFACE 0
#endif
