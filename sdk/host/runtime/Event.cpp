#include "Event.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "Device.h"
#include "Handles.h"
#include "Pool.h"

namespace musa::host {
namespace {

Handles<musaEvent>& events() {
  static auto* live = new Handles<musaEvent>;  // never destroyed, as the memory registry
  return *live;
}

// What there is to wait for: nothing, a mark of this process, or one shared with others. An event
// recorded in a capture stands for no work that runs.
struct Awaited {
  std::shared_ptr<Mark> mark;
  std::shared_ptr<SharedMark> shared;
  uint64_t record = 0;

  bool reached() const {
    return shared ? shared->reached(record) : mark == nullptr || mark->reached();
  }
  void wait() const {
    if (shared) {
      require(shared->wait(record), musaErrorLaunchFailure);
    } else if (mark) {
      mark->wait();
    }
  }
};

Awaited awaited(musaEvent& event) {
  std::lock_guard lock(event.mutex);
  require(!event.point, musaErrorCapturedEvent);
  if (!event.shared) return {event.mark, nullptr, 0};
  return {nullptr, event.shared, event.shared->last_record()};
}

void record(const std::shared_ptr<musaEvent>& event, musaStream& stream) {
  if (auto point = captured_point(stream)) {
    std::lock_guard lock(event->mutex);
    event->point = std::move(point);
    return;
  }
  if (event->shared) {
    const uint64_t number = event->shared->record();
    {
      std::lock_guard lock(event->mutex);
      event->point = nullptr;
    }
    submit(stream, {[shared = event->shared, number] { shared->reach(number); }, Task::Kind::MARK,
                    "event"});
    return;
  }
  auto mark = std::make_shared<Mark>();
  {
    std::lock_guard lock(event->mutex);
    event->mark = mark;
    event->point = nullptr;
  }
  submit(stream, {[mark] { mark->reach(); }, Task::Kind::MARK, "event"});
}

}  // namespace

std::shared_ptr<musaEvent> find_event(musaEvent_t event) { return events().find(event); }

musaEvent_t add_event(int device, unsigned int flags, std::shared_ptr<SharedMark> shared) {
  return events().add(std::shared_ptr<musaEvent>(
      new musaEvent{device, flags, std::move(shared), {}, nullptr, nullptr}));
}

}  // namespace musa::host

using musa::host::api;
using musa::host::current_device;
using musa::host::find_event;
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
    const bool interprocess = (flags & musaEventInterprocess) != 0;
    require(!interprocess || (flags & musaEventDisableTiming) != 0);
    musa::host::require_device(current_device());
    *event = musa::host::add_event(current_device(), flags,
                                   interprocess ? musa::host::SharedMark::create() : nullptr);
  });
}

musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream) {
  return api([&] {
    const auto mark = find_event(event);
    const auto target = resolve(stream, current_device());
    require(mark->device == target->device, musaErrorInvalidResourceHandle);
    musa::host::record(mark, *target);
  });
}

musaError_t musaEventRecordWithFlags(musaEvent_t event, musaStream_t stream, unsigned int flags) {
  return flags == musaEventRecordDefault ? musaEventRecord(event, stream)
                                         : api([] { require(false); });
}

// An event that was never recorded counts as reached.
musaError_t musaEventQuery(musaEvent_t event) {
  return api(
      [&] { require(musa::host::awaited(*find_event(event)).reached(), musaErrorNotReady); });
}

musaError_t musaEventSynchronize(musaEvent_t event) {
  const musaError_t error = api([&] {
    const auto found = find_event(event);
    musa::host::awaited(*found).wait();
    musa::host::trim_pools(found->device);
  });
  return error != musaSuccess ? error : musa::host::blocking_error();
}

musaError_t musaStreamWaitEvent(musaStream_t stream, musaEvent_t event, unsigned int flags) {
  return api([&] {
    require(flags == musaEventWaitDefault);
    const auto target = resolve(stream, current_device());
    const auto found = find_event(event);
    std::shared_ptr<musa::host::CapturedPoint> point;
    {
      std::lock_guard lock(found->mutex);
      point = found->point;
    }
    if (musa::host::wait_in_capture(target, point.get())) return;
    const musa::host::Awaited what = musa::host::awaited(*found);
    if (what.reached()) return;
    musa::host::submit(*target, {[what] {
                                   try {
                                     what.wait();
                                   } catch (const musa::host::Failure&) {
                                     musa::host::set_sticky_error(musaErrorLaunchFailure);
                                   }
                                 },
                                 musa::host::Task::Kind::MARK, "wait for an event"});
  });
}

musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start, musaEvent_t end) {
  return api([&] {
    require(milliseconds != nullptr);
    const auto first = find_event(start);
    const auto second = find_event(end);
    require(first->device == second->device, musaErrorInvalidResourceHandle);
    musa::host::Mark::Clock::time_point times[2];
    bool passed = true;
    int i = 0;
    for (const auto& event : {first, second}) {
      require((event->flags & musaEventDisableTiming) == 0, musaErrorInvalidResourceHandle);
      const auto mark = musa::host::awaited(*event).mark;
      require(mark != nullptr, musaErrorInvalidResourceHandle);
      passed = passed && mark->reached();
      times[i++] = mark->time();
    }
    require(passed, musaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  });
}

musaError_t musaEventDestroy(musaEvent_t event) {
  return api([&] { musa::host::events().remove(event); });
}
