// Streams: orders of execution. By default work runs in the caller's thread, so a stream is idle
// whenever no caller is inside it; with MUSA_LAUNCH_BLOCKING=0 every stream has a queue.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "Api.h"
#include "Queue.h"

namespace musa::host {
struct Capture;
}

struct musaStream {
  musaStream(int device_, unsigned int flags_, int priority_, bool legacy_);

  const int device;
  const unsigned int flags;
  const int priority;
  const bool legacy;  // the device's default stream
  // Held while a piece of work runs. Recursive: work may enqueue further work on its own stream.
  std::recursive_mutex order;
  const std::shared_ptr<musa::host::Queue> queue;  // null in the synchronous mode
  // Guarded by the captures' lock; `capturing` tells those who need not know which.
  std::shared_ptr<musa::host::Capture> capture;
  std::atomic<bool> capturing{false};

  // Waits for the default stream, and it for this one.
  bool blocking() const { return !legacy && (flags & musaStreamNonBlocking) == 0; }
};

namespace musa::host {

// The live stream behind the handle; `device` decides which default stream the null handle means.
// musaErrorInvalidResourceHandle for a handle that is not alive.
std::shared_ptr<musaStream> resolve(musaStream_t stream, int device);

// Runs, queues or captures the task. In the synchronous mode what it throws is passed on.
void submit(musaStream& stream, Task task);

// Waits until all work of the stream (of any stream of the device) is done.
void synchronize(musaStream& stream);
void synchronize_device(int device);
bool idle(musaStream& stream);

// Makes every call in children of this process fail, as fits a device that was used before the
// fork. Once.
void forbid_forks();

}  // namespace musa::host
