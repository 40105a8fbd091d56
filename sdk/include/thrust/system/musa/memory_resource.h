// Memory of the `musa` system: the runtime's.
#pragma once

#include <thrust/mr/memory_resource.h>
#include <thrust/system/musa/pointer.h>

#include <new>

#include "musa_runtime_api.h"

THRUST_NAMESPACE_BEGIN
namespace system::musa {
namespace detail {

template <musaError_t (*kAllocate)(void**, std::size_t), musaError_t (*kFree)(void*),
          typename Pointer>
class runtime_memory final : public thrust::mr::memory_resource<Pointer> {
 public:
  Pointer do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    if (kAllocate(&memory, bytes) != musaSuccess) {
      (void)musaGetLastError();
      throw std::bad_alloc();
    }
    return Pointer(memory);
  }
  void do_deallocate(Pointer memory, std::size_t, std::size_t) override {
    (void)kFree(memory.get());
  }
};

}  // namespace detail

using memory_resource = detail::runtime_memory<&musaMalloc, &musaFree, pointer<void>>;
using universal_memory_resource =
    detail::runtime_memory<&musaMallocHost, &musaFreeHost, universal_pointer<void>>;
using universal_host_pinned_memory_resource = universal_memory_resource;

}  // namespace system::musa
THRUST_NAMESPACE_END
