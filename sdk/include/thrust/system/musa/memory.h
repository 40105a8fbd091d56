// Allocation on the `musa` system.
#pragma once

#include <thrust/memory.h>
#include <thrust/mr/allocator.h>
#include <thrust/system/musa/memory_resource.h>

THRUST_NAMESPACE_BEGIN
namespace system::musa {

inline pointer<void> malloc(std::size_t bytes) {
  tag system;
  return pointer<void>(detail::malloc(system, bytes));
}
template <typename T>
pointer<T> malloc(std::size_t count) {
  tag system;
  return pointer<T>(static_cast<T*>(detail::malloc(system, count * sizeof(T))));
}
inline void free(pointer<void> memory) {
  tag system;
  detail::free(system, memory);
}

template <typename T>
using allocator = thrust::mr::stateless_resource_allocator<T, memory_resource>;
template <typename T>
using universal_allocator = thrust::mr::stateless_resource_allocator<T, universal_memory_resource>;
template <typename T>
using universal_host_pinned_allocator =
    thrust::mr::stateless_resource_allocator<T, universal_host_pinned_memory_resource>;

}  // namespace system::musa

namespace musa {
using system::musa::allocator;
using system::musa::free;
using system::musa::malloc;
}  // namespace musa
THRUST_NAMESPACE_END
