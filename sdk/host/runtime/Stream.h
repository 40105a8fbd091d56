// Streams: an order of execution. Work runs in the caller's thread, so a stream is idle whenever no
// caller is inside it.
#pragma once

#include <memory>
#include <mutex>

#include "Api.h"

struct musaStream {
  int device;
  unsigned int flags;
  int priority;
  // Held while a piece of work runs. Recursive: work may enqueue further work on its own stream.
  std::recursive_mutex order;
};

namespace musa::host {

// The live stream behind the handle; `device` decides which default stream the null handle means.
// musaErrorInvalidResourceHandle for a handle that is not alive.
std::shared_ptr<musaStream> resolve(musaStream_t stream, int device);

// Waits until no work of the stream (of any stream of the device) is running.
void synchronize(musaStream& stream);
void synchronize_device(int device);

}  // namespace musa::host
