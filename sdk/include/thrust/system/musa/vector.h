// Vectors of the `musa` system.
#pragma once

#include <thrust/detail/vector_base.h>
#include <thrust/system/musa/memory.h>

THRUST_NAMESPACE_BEGIN
namespace system::musa {

template <typename T, typename Allocator = allocator<T>>
using vector = thrust::detail::vector_base<T, Allocator>;
template <typename T, typename Allocator = universal_allocator<T>>
using universal_vector = thrust::detail::vector_base<T, Allocator>;
template <typename T>
using universal_host_pinned_vector =
    thrust::detail::vector_base<T, universal_host_pinned_allocator<T>>;

}  // namespace system::musa

namespace musa {
using system::musa::universal_vector;
using system::musa::vector;
}  // namespace musa
THRUST_NAMESPACE_END
