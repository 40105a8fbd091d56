// Events: marks in a stream, with the time at which the stream reached them.
#pragma once

#include <memory>
#include <mutex>

#include "Capture.h"
#include "Queue.h"
#include "SharedMark.h"

struct musaEvent {
  const int device;
  const unsigned int flags;
  const std::shared_ptr<musa::host::SharedMark> shared;  // musaEventInterprocess

  std::mutex mutex;                                  // guards what follows
  std::shared_ptr<musa::host::Mark> mark;            // of the last record; null: never recorded
  std::shared_ptr<musa::host::CapturedPoint> point;  // ... if that was in a capture
};

namespace musa::host {

std::shared_ptr<musaEvent> find_event(musaEvent_t event);
musaEvent_t add_event(int device, unsigned int flags, std::shared_ptr<SharedMark> shared);

}  // namespace musa::host
