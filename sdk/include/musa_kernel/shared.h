// Shared memory. mcc rewrites declarations:
//
//   __shared__ float tile[32][33];   float (&tile)[32][33] = a place in the block's own memory
//   extern __shared__ float buffer[];  float (&buffer)[] = the launch's dynamic memory
//
// In a file that mcc does not see (a header included as <...> from elsewhere) the word itself
// stands for storage of the thread that runs the block: it works, but no limit holds and no overrun
// shows.
#pragma once

#include <type_traits>

#include "engine.h"

namespace musa::host {

template <typename T>
T& shared(const SharedVariable& variable) {
  static_assert(std::is_trivially_destructible_v<std::remove_all_extents_t<T>>,
                "a __shared__ variable is neither constructed nor destroyed");
  return *static_cast<std::remove_reference_t<T>*>(shared_variable(variable));
}

template <typename Element>
auto dynamic_shared_array() -> Element (&)[] {
  return *static_cast<Element(*)[]>(dynamic_shared());
}

// `extern __shared__ T name[];` outside functions, where a reference would be bound once.
template <typename Element>
struct DynamicShared {
  Element* get() const { return static_cast<Element*>(dynamic_shared()); }
  operator Element*() const { return get(); }
  template <typename Other>
  explicit operator Other*() const {
    return reinterpret_cast<Other*>(get());
  }
};

}  // namespace musa::host

#define __shared__ static thread_local
