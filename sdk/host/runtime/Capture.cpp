#include "Capture.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "Device.h"
#include "Graph.h"

namespace musa::host {
namespace {

std::mutex captures_mutex;
std::set<std::shared_ptr<Capture>> captures;  // guarded by captures_mutex
std::atomic<int> active_captures{0};          // their number: nearly always 0, and then no lock
unsigned long long last_id = 0;

thread_local musaStreamCaptureMode thread_mode = musaStreamCaptureModeGlobal;

bool none_active() { return active_captures.load(std::memory_order_acquire) == 0; }

[[noreturn]] void fail(musaError_t error, Capture& broken) {
  broken.invalidated = true;
  throw Failure{error};
}

void require_valid(const Capture& capture) {
  require(!capture.invalidated, musaErrorStreamCaptureInvalidated);
}

void join(const std::shared_ptr<Capture>& capture, musaStream& stream) {
  stream.capture = capture;
  stream.capturing.store(true, std::memory_order_release);
  capture->tails[&stream];
}

void end(const std::shared_ptr<Capture>& capture) {
  for (auto& [stream, tail] : capture->tails) {
    stream->capture = nullptr;
    stream->capturing.store(false, std::memory_order_release);
  }
  captures.erase(capture);
  active_captures.store(static_cast<int>(captures.size()), std::memory_order_release);
}

musaGraphNodeType node_type(const Task& task) {
  const std::string_view name = task.name == nullptr ? "" : task.name;
  if (task.kind == Task::Kind::HOST) return musaGraphNodeTypeHost;
  if (task.kind == Task::Kind::MARK) return musaGraphNodeTypeEmpty;
  if (name == "memcpy") return musaGraphNodeTypeMemcpy;
  if (name == "memset") return musaGraphNodeTypeMemset;
  return musaGraphNodeTypeKernel;
}

// Whether everything the other streams recorded comes before the origin's end.
bool all_joined(const Capture& capture) {
  std::set<const musaGraphNode*> before;
  std::vector<const musaGraphNode*> open;
  for (const auto& [stream, tail] : capture.tails) {
    if (stream == capture.origin) open = tail;
  }
  while (!open.empty()) {
    const musaGraphNode* node = open.back();
    open.pop_back();
    if (before.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return std::all_of(capture.tails.begin(), capture.tails.end(), [&](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(),
                       [&](const musaGraphNode* node) { return before.count(node) != 0; });
  });
}

}  // namespace

bool captures_go_on() { return !none_active(); }

bool record_in_capture(musaStream& stream, Task& task) {
  if (none_active()) return false;
  std::lock_guard lock(captures_mutex);
  if (stream.capture) {
    Capture& capture = *stream.capture;
    require_valid(capture);
    auto& tail = capture.tails[&stream];
    auto node = std::make_shared<musaGraphNode>(
        musaGraphNode{node_type(task), std::move(task), std::exchange(tail, {})});
    tail.push_back(node.get());
    capture.nodes.push_back(std::move(node));
    return true;
  }
  if (stream.legacy) {
    for (const auto& capture : captures) {
      for (const auto& [other, tail] : capture->tails) {
        if (other->device == stream.device && other->blocking()) {
          fail(musaErrorStreamCaptureImplicit, *capture);
        }
      }
    }
  }
  return false;
}

std::shared_ptr<CapturedPoint> captured_point(musaStream& stream) {
  if (none_active()) return nullptr;
  std::lock_guard lock(captures_mutex);
  if (!stream.capture) return nullptr;
  require_valid(*stream.capture);
  return std::make_shared<CapturedPoint>(
      CapturedPoint{stream.capture, stream.capture->tails[&stream]});
}

bool is_open(const CapturedPoint& point) {
  std::lock_guard lock(captures_mutex);
  return captures.count(point.capture.lock()) != 0;
}

bool wait_in_capture(const std::shared_ptr<musaStream>& stream, const CapturedPoint* point) {
  if (none_active() && point == nullptr) return false;
  std::lock_guard lock(captures_mutex);
  const std::shared_ptr<Capture> theirs = point == nullptr ? nullptr : point->capture.lock();
  const bool open = theirs != nullptr && captures.count(theirs) != 0;
  if (!open) {
    // An event of a capture that has ended stands for no work that ever ran.
    require(point == nullptr, musaErrorCapturedEvent);
    if (!stream->capture) return false;
    fail(musaErrorStreamCaptureIsolation, *stream->capture);
  }
  require_valid(*theirs);
  if (stream->legacy) fail(musaErrorStreamCaptureImplicit, *theirs);
  if (stream->capture && stream->capture != theirs) {
    stream->capture->invalidated = true;
    fail(musaErrorStreamCaptureMerge, *theirs);
  }
  if (!stream->capture) join(theirs, *stream);
  auto& tail = theirs->tails[stream.get()];
  for (const musaGraphNode* node : point->after) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return true;
}

void require_not_capturing(musaStream& stream) {
  if (none_active()) return;
  std::lock_guard lock(captures_mutex);
  if (stream.capture) fail(musaErrorStreamCaptureUnsupported, *stream.capture);
  if (!stream.legacy) return;
  for (const auto& capture : captures) {
    for (const auto& [other, tail] : capture->tails) {
      if (other->device == stream.device && other->blocking()) {
        fail(musaErrorStreamCaptureImplicit, *capture);
      }
    }
  }
}

void require_no_capture(int device) {
  if (none_active()) return;
  std::lock_guard lock(captures_mutex);
  for (const auto& capture : captures) {
    for (const auto& [stream, tail] : capture->tails) {
      if (stream->device == device) fail(musaErrorStreamCaptureUnsupported, *capture);
    }
  }
}

void require_no_unsafe_capture() {
  if (none_active() || thread_mode == musaStreamCaptureModeRelaxed) return;
  std::lock_guard lock(captures_mutex);
  bool allowed = true;
  for (const auto& capture : captures) {
    const bool mine = capture->owner == std::this_thread::get_id();
    const bool concerns_us = mine ? capture->mode != musaStreamCaptureModeRelaxed
                                  : capture->mode == musaStreamCaptureModeGlobal &&
                                        thread_mode == musaStreamCaptureModeGlobal;
    if (!concerns_us) continue;
    capture->invalidated = true;
    allowed = false;
  }
  require(allowed, musaErrorStreamCaptureUnsupported);
}

void abandon_capture(musaStream& stream) {
  if (none_active()) return;
  std::lock_guard lock(captures_mutex);
  if (!stream.capture) return;
  const std::shared_ptr<Capture> capture = stream.capture;
  capture->invalidated = true;
  if (capture->origin == &stream) {
    end(capture);
    return;
  }
  capture->tails.erase(&stream);
  stream.capture = nullptr;
  stream.capturing.store(false, std::memory_order_release);
}

}  // namespace musa::host

using musa::host::api;
using musa::host::captures_mutex;
using musa::host::current_device;
using musa::host::require;
using musa::host::resolve;

musaError_t musaStreamBeginCapture(musaStream_t stream, musaStreamCaptureMode mode) {
  return api([&] {
    require(mode >= musaStreamCaptureModeGlobal && mode <= musaStreamCaptureModeRelaxed);
    const auto target = resolve(stream, current_device());
    require(!target->legacy, musaErrorStreamCaptureUnsupported);
    std::lock_guard lock(captures_mutex);
    require(!target->capture, musaErrorIllegalState);
    auto capture = std::make_shared<musa::host::Capture>();
    capture->id = ++musa::host::last_id;
    capture->mode = mode;
    capture->owner = std::this_thread::get_id();
    capture->origin = target.get();
    musa::host::join(capture, *target);
    musa::host::captures.insert(std::move(capture));
    musa::host::active_captures.store(static_cast<int>(musa::host::captures.size()));
  });
}

musaError_t musaStreamEndCapture(musaStream_t stream, musaGraph_t* graph) {
  return api([&] {
    require(graph != nullptr);
    *graph = nullptr;
    const auto target = resolve(stream, current_device());
    std::lock_guard lock(captures_mutex);
    const std::shared_ptr<musa::host::Capture> capture = target->capture;
    require(capture != nullptr, musaErrorIllegalState);
    require(capture->mode == musaStreamCaptureModeRelaxed ||
                capture->owner == std::this_thread::get_id(),
            musaErrorStreamCaptureWrongThread);
    if (capture->origin != target.get()) {
      musa::host::fail(musaErrorStreamCaptureUnmatched, *capture);
    }
    const bool joined = musa::host::all_joined(*capture);
    musa::host::end(capture);
    require(!capture->invalidated, musaErrorStreamCaptureInvalidated);
    require(joined, musaErrorStreamCaptureUnjoined);
    *graph = musa::host::make_graph(std::move(capture->nodes));
  });
}

musaError_t musaStreamIsCapturing(musaStream_t stream, musaStreamCaptureStatus* status) {
  return musaStreamGetCaptureInfo(stream, status, nullptr);
}

musaError_t musaStreamGetCaptureInfo(musaStream_t stream, musaStreamCaptureStatus* status,
                                     unsigned long long* id) {
  return api([&] {
    require(status != nullptr);
    const auto target = resolve(stream, current_device());
    *status = musaStreamCaptureStatusNone;
    if (musa::host::none_active()) return;
    std::lock_guard lock(captures_mutex);
    if (!target->capture) return;
    *status = target->capture->invalidated ? musaStreamCaptureStatusInvalidated
                                           : musaStreamCaptureStatusActive;
    if (id != nullptr) *id = target->capture->id;
  });
}

musaError_t musaThreadExchangeStreamCaptureMode(musaStreamCaptureMode* mode) {
  return api([&] {
    require(mode != nullptr);
    require(*mode >= musaStreamCaptureModeGlobal && *mode <= musaStreamCaptureModeRelaxed);
    std::swap(*mode, musa::host::thread_mode);
  });
}
