// What the host stand-in offers its own libraries beside the public runtime API: the one door
// through which device work runs. Op code never includes this; muDNN's stand-in and the launch
// template of .mu kernels do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "musa_runtime_api.h"

namespace musa::host {

// Runs `work` in the order of `stream` (null: default stream of the current device) and with device
// memory accessible. Today the call returns after the work has run and passes on what it throws;
// callers must not rely on either, only on stream order. Throws std::invalid_argument for a stream
// that is not alive.
MUSART_API void enqueue(musaStream_t stream, std::function<void()> work);

// The same for an explicit device; only the null stream needs it.
MUSART_API void enqueue(int device, musaStream_t stream, std::function<void()> work);

// Waits for all work enqueued on the stream.
MUSART_API void synchronize(int device, musaStream_t stream);

// Splits [begin, end) into pieces of at least `grain` and runs them on this process' pool, whose
// threads may touch device memory. Returns when all are done; the first exception is passed on.
// Only for work that is itself running inside enqueue.
MUSART_API void parallel_for(int64_t begin, int64_t end, int64_t grain,
                             const std::function<void(int64_t, int64_t)>& body);

// Whether a kernel on `device` may touch every byte of [pointer, pointer + bytes): device memory of
// its own, a peer's it was given access to, or pinned host memory.
MUSART_API bool device_accessible(const void* pointer, size_t bytes, int device);

// Leaves an error that no call can clear, as a kernel that faults does.
MUSART_API void set_sticky_error(musaError_t error);

// Sets the calling thread's last error (a launch with a bad configuration, say) and returns it.
MUSART_API musaError_t set_last_error(musaError_t error);

}  // namespace musa::host
