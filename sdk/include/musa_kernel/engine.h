// What runs kernels: the part of libmusart that the kernel headers call. Nobody else includes this.
//
// The threads of a block run one after the other in a plain loop, on a fibre. A thread that has to
// wait (a barrier, a warp operation) keeps that fibre, and the loop goes on from the next thread on
// another one. So nothing needs to know beforehand whether a kernel synchronises, and one that does
// not never pays for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

#include "musa_host.h"
#include "musa_vector_types.h"

namespace musa {
class LaneMask;
}

namespace musa::host {

// Where a launch stands in the source, for reports. The strings live as long as the program.
struct LaunchSite {
  const char* kernel = "kernel";
  const char* file = "";
  unsigned int line = 0;
};

// What stands between <<< and >>>.
struct LaunchConfig {
  LaunchConfig(dim3 grid_, dim3 block_, size_t shared_bytes_ = 0, musaStream_t stream_ = nullptr)
      : grid(grid_), block(block_), shared_bytes(shared_bytes_), stream(stream_) {}

  dim3 grid;
  dim3 block;
  size_t shared_bytes;  // of dynamic shared memory
  musaStream_t stream;
};

// What the runtime has learnt of a kernel from running it.
struct KernelFacts {
  std::atomic<size_t> static_shared_bytes{0};
  std::atomic<bool> synchronises{false};
  std::atomic<unsigned int> max_threads{0};  // of __launch_bounds__, once a launch broke them
};

// Runs the threads of the current block from `first` on, in the order of their linear index, until
// the last one or until one of them had to wait (`waited` below).
using ThreadLoop = std::function<void(uint3 first)>;

// kernel<<<config>>>(...): checks the configuration, then runs the grid in the order of the stream.
// A refused launch sets the calling thread's last error and returns it:
// musaErrorInvalidConfiguration for a grid or block without threads or beyond the device's limits,
// musaErrorInvalidValue for more shared memory than a block can have, musaErrorLaunchOutOfResources
// for more threads than the kernel's __launch_bounds__ allow (CUDA's codes for all of them).
MUSART_API musaError_t launch_grid(const LaunchSite& site, const LaunchConfig& config,
                                   KernelFacts& facts, ThreadLoop threads);

// Not null once the thread that the calling fibre runs has waited for another.
#define MUSA_HOST_TLS extern MUSART_API constinit thread_local
#define MUSA_HOST_TLS_MODEL __attribute__((tls_model("initial-exec")))
MUSA_HOST_TLS const void* waited MUSA_HOST_TLS_MODEL;

// ---- inside a kernel
// -----------------------------------------------------------------------------

enum class Vote { none, count, conjunction, disjunction };

// A barrier of the whole block; `predicate` takes part in the vote, whose result is returned.
MUSART_API int block_barrier(Vote vote, bool predicate, const std::source_location& where);

// A meeting of the lanes named by `mask` (those that have not returned). The last one to come calls
// complete(payloads, lanes): payloads[l] is what lane l gave, null for a lane that is not there.
// Payloads live on their callers' stacks until all return.
using WarpComplete = void (*)(void* const* payloads, int lanes);
MUSART_API void warp_meeting(const LaneMask& mask, void* payload, WarpComplete complete,
                             const char* operation, const std::source_location& where);

// The lanes of this warp that have come to the same place when none of the block can go further.
MUSART_API LaneMask converged_lanes(const std::source_location& where);

// The block's own copy of a shared variable, made (and filled with 0xff, for nobody initializes it)
// when its first thread comes to the declaration.
struct SharedVariable {
  const char* name;
  size_t bytes;
  size_t alignment;
};
MUSART_API void* shared_variable(const SharedVariable& variable);
// The dynamic shared memory of the launch. At its end the address space ends, too.
MUSART_API void* dynamic_shared();

// A thread may wait for another one of its block by reading, with atomic functions, what that one
// will write. After so many of them in a row others get their turn.
constexpr unsigned int kAtomicsInARow = 4096;
MUSA_HOST_TLS unsigned int atomics_left MUSA_HOST_TLS_MODEL;
MUSART_API void take_turns();

inline void count_atomic() {
  if (--atomics_left == 0) [[unlikely]] {
    take_turns();
  }
}

// What mcc puts in front of the first statement of a kernel with __launch_bounds__: the grid ends
// before a thread has done anything where its blocks are larger.
MUSA_HOST_TLS unsigned int block_threads MUSA_HOST_TLS_MODEL;
MUSART_API void exceed_launch_bounds(unsigned int allowed);

inline void check_launch_bounds(unsigned int allowed) {
  if (block_threads > allowed) [[unlikely]] {
    exceed_launch_bounds(allowed);
  }
}

// A `__constant__` variable of a source, noted by mcc behind its declaration.
MUSART_API void count_constant(size_t& bytes_of_source, size_t bytes, const char* name,
                               const char* file, unsigned int line);

// Ends the kernel: the report names it, the block and the thread; the device keeps the error.
[[noreturn]] MUSART_API void kernel_fault(musaError_t error, const char* what);

MUSART_API bool inside_kernel();
MUSART_API int warp_size();  // of the profile MUSA_ARCH

}  // namespace musa::host
