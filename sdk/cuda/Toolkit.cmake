# nvcc and the libraries of the CUDA toolkit. Included by the top-level folder before any target is made.
#
# In:  CMAKE_CUDA_COMPILER, CMAKE_CUDA_ARCHITECTURES (`opgen build` gives both)
# Out: OPGEN_SDK_INCLUDES, the folders of the toolkit's headers: first what differs, then what all targets share,
#      OPGEN_FIRST_HEADER, in front of every source (it says why), which the precompiled header brings to most,
#      OPGEN_NVCC_OPTIONS for .mu sources, OPGEN_NVCC_HOST_OPTIONS for .cu sources of the stand-in itself
if(NOT EXISTS ${TORCH_LIBRARY_C10_CUDA})
  message(FATAL_ERROR "torch ${TORCH_VERSION} in ${TORCH_DIR} is a build without CUDA; the target cuda needs one with it")
endif()
# One runtime in the process, which is torch's: it knows the kernels of all libraries.
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
enable_language(CUDA)
set(OPGEN_SDK_INCLUDES ${CMAKE_SOURCE_DIR}/sdk/cuda/include ${CMAKE_SOURCE_DIR}/sdk/include)
find_package(CUDAToolkit REQUIRED)
set(OPGEN_FIRST_HEADER ${CMAKE_SOURCE_DIR}/sdk/cuda/include/musa_runtime_api.h)
set(OPGEN_PCH_INCLUDES ${CUDAToolkit_INCLUDE_DIRS})

# Lambdas with __device__ and constexpr functions in kernels, as PyTorch's own CUDA sources are compiled. The warnings are
# about headers of the wheel.
set(OPGEN_NVCC_HOST_OPTIONS
  --extended-lambda --expt-relaxed-constexpr --diag-suppress=20012,20014,20208,177,611,997,2361,3142
  -Xcompiler=-Wno-sign-compare,-Wno-unused-local-typedefs)
# A function of the host in a kernel is a warning by default, and gives some value when the kernel runs.
list(APPEND OPGEN_NVCC_HOST_OPTIONS --Werror=cross-execution-space-call)
# The operators of c10::Half and c10::BFloat16 are the ones meant; with CUDA's own beside them calls are ambiguous.
list(APPEND OPGEN_NVCC_HOST_OPTIONS
  -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__
  -D__CUDA_NO_BFLOAT16_CONVERSIONS__)
set(OPGEN_NVCC_OPTIONS ${OPGEN_NVCC_HOST_OPTIONS} -include=${CMAKE_SOURCE_DIR}/sdk/cuda/include/musa_kernel_cuda.h)
