// Stands in front of CCCL's file of this name, which knows only CCCL's own backends: Thrust's
// device system is `musa`, in thrust/system/musa beside this folder. All algorithms come from one
// header.
#pragma once

#define THRUST_DEVICE_SYSTEM_CUDA 1
#define THRUST_DEVICE_SYSTEM_OMP 2
#define THRUST_DEVICE_SYSTEM_TBB 3
#define THRUST_DEVICE_SYSTEM_CPP 4
#define THRUST_DEVICE_SYSTEM_MUSA 5
#undef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_MUSA

// clang-format off
#define __THRUST_DEVICE_SYSTEM_NAMESPACE musa
#define __THRUST_DEVICE_SYSTEM_ROOT thrust/system/musa
#define __THRUST_DEVICE_SYSTEM_ALGORITH_HEADER_INCLUDE(filename) <thrust/system/musa/filename>
#define __THRUST_DEVICE_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(filename) <thrust/system/musa/detail/algorithms.h>
// clang-format on
