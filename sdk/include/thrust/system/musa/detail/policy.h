// Thrust's device system on the host stand-in: the tag, the policies `thrust::musa::par`,
// `par.on(stream)`, `par(allocator).on(stream)`, and how an algorithm runs under them.
//
// An algorithm is a piece of work on a stream: CCCL's sequential backend does it, in the stream's
// order and with device memory accessible, and the call returns when it is done (which `par_nosync`
// allows, too).
#pragma once

#include <thrust/detail/config.h>
#include <thrust/detail/execution_policy.h>
#include <thrust/system/cpp/detail/execution_policy.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "musa_host.h"

THRUST_NAMESPACE_BEGIN
namespace system::musa {
namespace detail {

struct tag;
template <typename Derived>
struct execution_policy;
template <>
struct execution_policy<tag> : thrust::execution_policy<tag> {
  using tag_type = tag;
};
struct tag : execution_policy<tag> {};
template <typename Derived>
struct execution_policy : thrust::execution_policy<Derived> {
  using tag_type = tag;
  operator tag() const { return {}; }
};

struct execute_on_stream : execution_policy<execute_on_stream> {
  explicit execute_on_stream(musaStream_t stream_) : stream(stream_) {}
  execute_on_stream on(musaStream_t other) const { return execute_on_stream(other); }
  musaStream_t stream;
};

// `par(allocator)`: temporary memory is the backend's own here, the allocator is not asked.
struct par_t : execution_policy<par_t> {
  execute_on_stream on(musaStream_t stream) const { return execute_on_stream(stream); }
  template <typename Allocator>
  par_t operator()(Allocator&&) const {
    return *this;
  }
};

template <typename Derived>
musaStream_t stream_of(const execution_policy<Derived>& policy) {
  if constexpr (std::is_base_of_v<execute_on_stream, Derived>) {
    return static_cast<const Derived&>(policy).stream;
  } else {
    return nullptr;
  }
}

// Whether the calling thread runs an algorithm already: what it calls needs no further turn.
inline thread_local int depth = 0;

template <typename Function>
void run_on(musaStream_t stream, Function& function) {
  std::exception_ptr error;
  bool done = false;
  const musaError_t refused = ::musa::host::try_enqueue(stream, [&] {
    ++depth;
    try {
      function();
      done = true;
    } catch (...) {
      error = std::current_exception();
    }
    --depth;
  });
  const musaError_t status = refused != musaSuccess ? refused : musaStreamSynchronize(stream);
  if (error) std::rethrow_exception(error);
  if (!done || status != musaSuccess) {
    throw std::runtime_error(std::string("thrust: the device does not run algorithms: ") +
                             musaGetErrorString(status));
  }
}

template <typename Derived, typename Function>
auto run(const execution_policy<Derived>& policy, Function function) -> decltype(function()) {
  using Result = decltype(function());
  if (depth != 0) return function();
  if constexpr (std::is_void_v<Result>) {
    run_on(stream_of(policy), function);
  } else {
    std::optional<Result> result;
    auto keep = [&] { result.emplace(function()); };
    run_on(stream_of(policy), keep);
    return *std::move(result);
  }
}

// Between host and device the device's policy wins: its work may touch both memories.
template <typename A, typename B>
A& select_system(execution_policy<A>& a, execution_policy<B>&) {
  return static_cast<A&>(a);
}
template <typename A, typename B>
A& select_system(execution_policy<A>& a, thrust::execution_policy<B>&) {
  return static_cast<A&>(a);
}
template <typename A, typename B>
B& select_system(thrust::execution_policy<A>&, execution_policy<B>& b) {
  return static_cast<B&>(b);
}

}  // namespace detail

using detail::execution_policy;
using detail::tag;
inline constexpr detail::par_t par;
inline constexpr detail::par_t par_nosync;

}  // namespace system::musa

namespace musa {
using system::musa::execution_policy;
using system::musa::par;
using system::musa::par_nosync;
using system::musa::tag;
}  // namespace musa
THRUST_NAMESPACE_END
