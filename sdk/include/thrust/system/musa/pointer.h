// Pointers and references of the `musa` system.
#pragma once

#include <thrust/detail/pointer.h>
#include <thrust/detail/reference.h>
#include <thrust/system/musa/detail/policy.h>

#include <type_traits>

THRUST_NAMESPACE_BEGIN
namespace system::musa {

template <typename T>
using pointer = thrust::pointer<T, tag, thrust::tagged_reference<T, tag>>;
// To memory that host and device share.
template <typename T>
using universal_pointer = thrust::pointer<T, tag, std::add_lvalue_reference_t<T>>;
template <typename T>
using universal_host_pinned_pointer = universal_pointer<T>;
template <typename T>
using reference = thrust::reference<T, tag>;

}  // namespace system::musa

namespace musa {
using system::musa::pointer;
using system::musa::reference;
using system::musa::universal_host_pinned_pointer;
using system::musa::universal_pointer;
}  // namespace musa
THRUST_NAMESPACE_END
