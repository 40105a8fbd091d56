#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace at::musa {

/// Page-locked host memory, cached by power-of-two size.
HostAllocator* getMUSAPinnedMemoryAllocator();

/// Whether `ptr` lies in memory that the runtime knows as page-locked host memory.
bool isPinnedPtr(const void* ptr);

}  // namespace at::musa
