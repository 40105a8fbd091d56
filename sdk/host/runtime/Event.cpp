// Events: marks in a stream, with the time at which the stream reached them.
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "Device.h"
#include "Stream.h"

struct musaEvent {
  int device;
  unsigned int flags;
  std::mutex mutex;
  bool recorded = false;
  std::chrono::steady_clock::time_point reached;
};

namespace musa::host {
namespace {

class Events {
 public:
  static Events& instance() {
    static Events* events = new Events;  // never destroyed, as the memory registry
    return *events;
  }

  musaEvent_t create(int device, unsigned int flags) {
    auto event = std::make_shared<musaEvent>();
    event->device = device;
    event->flags = flags;
    std::unique_lock lock(mutex_);
    live_.emplace(event.get(), event);
    return event.get();
  }

  void destroy(musaEvent_t handle) {
    std::unique_lock lock(mutex_);
    require(live_.erase(handle) == 1, musaErrorInvalidResourceHandle);
  }

  std::shared_ptr<musaEvent> find(musaEvent_t handle) const {
    std::shared_lock lock(mutex_);
    auto found = live_.find(handle);
    require(found != live_.end(), musaErrorInvalidResourceHandle);
    return found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<musaEvent_t, std::shared_ptr<musaEvent>> live_;
};

}  // namespace
}  // namespace musa::host

using musa::host::api;
using musa::host::current_device;
using musa::host::Events;
using musa::host::require;
using musa::host::resolve;

musaError_t musaEventCreate(musaEvent_t* event) {
  return musaEventCreateWithFlags(event, musaEventDefault);
}

musaError_t musaEventCreateWithFlags(musaEvent_t* event, unsigned int flags) {
  return api([&] {
    require(event != nullptr);
    constexpr unsigned kKnown =
        musaEventBlockingSync | musaEventDisableTiming | musaEventInterprocess;
    require((flags & ~kKnown) == 0);
    // An event that crosses processes cannot carry a time.
    require((flags & musaEventInterprocess) == 0 || (flags & musaEventDisableTiming) != 0);
    musa::host::require_device(current_device());
    *event = Events::instance().create(current_device(), flags);
  });
}

musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream) {
  return api([&] {
    const auto mark = Events::instance().find(event);
    const auto target = resolve(stream, current_device());
    require(mark->device == target->device, musaErrorInvalidResourceHandle);
    musa::host::synchronize(*target);
    std::lock_guard lock(mark->mutex);
    mark->recorded = true;
    mark->reached = std::chrono::steady_clock::now();
  });
}

// An event that was never recorded counts as reached. A recorded one has been reached already: its
// stream had nothing left to do when it was recorded.
musaError_t musaEventQuery(musaEvent_t event) {
  return api([&] { Events::instance().find(event); });
}

musaError_t musaEventSynchronize(musaEvent_t event) { return musaEventQuery(event); }

musaError_t musaStreamWaitEvent(musaStream_t stream, musaEvent_t event, unsigned int flags) {
  return api([&] {
    require(flags == musaEventWaitDefault);
    resolve(stream, current_device());
    Events::instance().find(event);
  });
}

musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start, musaEvent_t end) {
  return api([&] {
    require(milliseconds != nullptr);
    const auto first = Events::instance().find(start);
    const auto second = Events::instance().find(end);
    std::chrono::steady_clock::time_point times[2];
    int i = 0;
    for (const auto& event : {first, second}) {
      std::lock_guard lock(event->mutex);
      require(event->recorded && (event->flags & musaEventDisableTiming) == 0,
              musaErrorInvalidResourceHandle);
      times[i++] = event->reached;
    }
    require(first->device == second->device, musaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  });
}

musaError_t musaEventDestroy(musaEvent_t event) {
  return api([&] { Events::instance().destroy(event); });
}
