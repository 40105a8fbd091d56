// Stream capture: work that is recorded as the nodes of a graph instead of being run.
#pragma once

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "Stream.h"

struct musaGraphNode {
  musaGraphNodeType type;
  musa::host::Task task;
  std::vector<const musaGraphNode*> after;
};

namespace musa::host {

using Nodes = std::vector<std::shared_ptr<musaGraphNode>>;

struct Capture {
  unsigned long long id;
  musaStreamCaptureMode mode;
  std::thread::id owner;
  const musaStream* origin;
  bool invalidated = false;
  Nodes nodes;
  // The streams that take part, each with the nodes that its next one follows.
  std::map<musaStream*, std::vector<const musaGraphNode*>> tails;
};

// What an event recorded in a capture stands for.
struct CapturedPoint {
  std::weak_ptr<Capture> capture;
  std::vector<const musaGraphNode*> after;
};

// Whether any stream of the process is capturing.
bool captures_go_on();

// Records the task if the stream is capturing; false: run it. Fails where the stream's capture is
// broken, and where the default stream would have to wait for a capturing one.
bool record_in_capture(musaStream& stream, Task& task);

// The place a capturing stream has come to; null when it is not capturing.
std::shared_ptr<CapturedPoint> captured_point(musaStream& stream);

// musaStreamWaitEvent for an event of a capture (`point`), which draws the stream into it, and for
// any other (null), which a capturing stream may not wait for. True: done; false: no capture is
// concerned.
bool wait_in_capture(const std::shared_ptr<musaStream>& stream, const CapturedPoint* point);

// Whether the event's capture is still going on.
bool is_open(const CapturedPoint& point);

// Fail and break the captures concerned: for calls that wait for a stream, for the whole device,
// or that are not safe while a capture of the thread (or, in global mode, of any) goes on.
void require_not_capturing(musaStream& stream);
void require_no_capture(int device);
void require_no_unsafe_capture();

// The stream goes away: its capture ends broken.
void abandon_capture(musaStream& stream);

}  // namespace musa::host
