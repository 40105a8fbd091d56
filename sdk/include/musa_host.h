// What the host stand-in offers its own libraries beside the public runtime API: the one door
// through which device work runs. Op code never includes this; muDNN's stand-in and the launch
// template of .mu kernels do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "musa_runtime_api.h"
#include "musa_vector_types.h"

namespace musa::host {

// ---- running work ----------------------------------------------------------------------------

// Runs `work` in the order of `stream` (null: default stream of the current device) and with device
// memory accessible. By default the call returns after the work has run and passes on what it
// throws. With MUSA_LAUNCH_BLOCKING=0 it returns at once, and what the work throws is printed and
// becomes a sticky musaErrorLaunchFailure. During a capture the work is recorded, to be run any
// number of times. So `work` owns what it needs (device memory excepted, which its user keeps
// until the stream has passed) and may run more than once.
//
// Throws std::invalid_argument for a stream that is not alive, std::runtime_error where a capture
// forbids the call or an earlier error sticks.
MUSART_API void enqueue(musaStream_t stream, std::function<void()> work);

// The same for an explicit device; only the null stream needs it. `name`, a string that lives as
// long as the process, is what messages call the work (null: its C++ type).
MUSART_API void enqueue(int device, musaStream_t stream, std::function<void()> work,
                        const char* name = nullptr);

// The same for those who answer with codes themselves: returned, and the thread's last error, is
// what enqueue throws of its own. What the work throws is passed on here, too.
MUSART_API musaError_t try_enqueue(musaStream_t stream, std::function<void()> work);
MUSART_API musaError_t try_enqueue(int device, musaStream_t stream, std::function<void()> work,
                                   const char* name = nullptr);

// For work so short that enqueue would cost more than the work: runs work(argument) in the order of
// the stream and with device memory accessible, and returns true after it has run; passes on what
// it throws. False, and nothing done, where work does not run in the caller's thread, or is being
// captured: then enqueue. Throws as enqueue does.
MUSART_API bool run_now(int device, musaStream_t stream, void (*work)(void*), void* argument,
                        const char* name = nullptr);

// Waits for all work enqueued on the stream. Throws as enqueue does.
MUSART_API void synchronize(int device, musaStream_t stream);

// Whether calls return before their work is done (MUSA_LAUNCH_BLOCKING=0).
MUSART_API bool asynchronous();

// Splits [begin, end) into pieces of at least `grain` and runs them on this process' pool, whose
// threads may touch device memory. Returns when all are done; the first exception is passed on.
// Only for work that is itself running inside enqueue.
MUSART_API void parallel_for(int64_t begin, int64_t end, int64_t grain,
                             const std::function<void(int64_t, int64_t)>& body);

// ---- device memory ---------------------------------------------------------------------------

// Whether a kernel on `device` may touch every byte of [pointer, pointer + bytes): device memory of
// its own, a peer's it was given access to, managed or pinned host memory.
MUSART_API bool device_accessible(const void* pointer, size_t bytes, int device);

// Lets the calling thread touch device memory from now on. For threads that do nothing but device
// work: a library's pool (OpenMP's, say) that was started outside of any work.
MUSART_API void open_device_memory();

// Whether there is anything to open: device memory is out of bounds for threads outside of work.
MUSART_API bool device_memory_is_protected();

// ---- kernels ---------------------------------------------------------------------------------

// What the runtime knows of a __global__ function.
struct KernelInfo {
  const char* name = nullptr;     // lives as long as the process
  size_t static_shared = 0;       // bytes
  int max_threads_per_block = 0;  // from __launch_bounds__; 0: what the device allows
  int registers = 32;
  // musaLaunchKernel: takes pointers to the arguments. Null where the kernel cannot be so launched.
  void (*launch)(dim3 grid, dim3 block, void** arguments, size_t shared,
                 musaStream_t stream) = nullptr;
};

// Makes musaFuncGetAttributes, musaOccupancy* and musaLaunchKernel work for `function`. Once per
// function; later calls change nothing.
MUSART_API void register_kernel(const void* function, const KernelInfo& info);

// Bytes of dynamic shared memory a launch of `function` may ask for: 48 KiB less the static ones,
// or what musaFuncSetAttribute has made of it.
MUSART_API size_t max_dynamic_shared(const void* function);

// ---- errors ----------------------------------------------------------------------------------

// Leaves an error that no call can clear, as a kernel that faults does.
MUSART_API void set_sticky_error(musaError_t error);

// Sets the calling thread's last error (a launch with a bad configuration, say) and returns it.
MUSART_API musaError_t set_last_error(musaError_t error);

}  // namespace musa::host
