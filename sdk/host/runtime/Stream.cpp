#include "Stream.h"

#include <shared_mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "Capture.h"
#include "Device.h"
#include "Division.h"
#include "Environment.h"
#include "Memory.h"
#include "Pool.h"
#include "Protect.h"

namespace musa::host {
namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

// Set while the calling thread runs a piece of work itself.
constinit thread_local int running_here MUSART_FAST_TLS = 0;

// One device's rule for its default stream: it excludes the blocking streams and they exclude it.
struct Legacy {
  std::shared_mutex excluding;           // synchronous mode: held by the default stream's work
  std::atomic<int> blocking_streams{0};  // alive; with none there is nothing to exclude
  std::mutex order;                      // of pushes, with queues
};

class Streams {
 public:
  static Streams& instance() {
    static Streams* streams = new Streams;  // never destroyed, as the memory registry
    return *streams;
  }

  musaStream_t create(int device, unsigned int flags, int priority) {
    auto stream = std::make_shared<musaStream>(device, flags, priority, /*legacy=*/false);
    if (stream->blocking()) ++legacy(device).blocking_streams;
    std::unique_lock lock(mutex_);
    live_.emplace(stream.get(), stream);
    return stream.get();
  }

  // What is enqueued still runs.
  void destroy(musaStream_t handle) {
    const std::shared_ptr<musaStream> stream = find(handle);
    abandon_capture(*stream);
    {
      std::unique_lock lock(mutex_);
      require(live_.erase(handle) == 1, musaErrorInvalidResourceHandle);
      if (stream->queue) ending_.push_back(stream);
    }
    if (!stream->queue) synchronize(*stream);
    if (stream->queue) stream->queue->close();
    if (stream->blocking()) --legacy(stream->device).blocking_streams;
  }

  std::shared_ptr<musaStream> find(musaStream_t handle) const {
    std::shared_lock lock(mutex_);
    auto found = live_.find(handle);
    require(found != live_.end(), musaErrorInvalidResourceHandle);
    return found->second;
  }

  const std::shared_ptr<musaStream>& default_stream(int device) const {
    require_device(device);
    return defaults_[static_cast<size_t>(device)];
  }

  // The device's streams, the default one first, and those destroyed with work left.
  std::vector<std::shared_ptr<musaStream>> of_device(int device) {
    std::vector<std::shared_ptr<musaStream>> streams{default_stream(device)};
    std::unique_lock lock(mutex_);
    for (const auto& [handle, stream] : live_) {
      if (stream->device == device) streams.push_back(stream);
    }
    std::erase_if(ending_, [](const auto& stream) { return stream->queue->last().reached(); });
    for (const auto& stream : ending_) {
      if (stream->device == device) streams.push_back(stream);
    }
    return streams;
  }

  Legacy& legacy(int device) { return legacies_[static_cast<size_t>(device)]; }

 private:
  Streams() : legacies_(static_cast<size_t>(device_count())) {
    for (int device = 0; device < device_count(); ++device) {
      auto* stream = new musaStream(device, musaStreamDefault, kLeastPriority, /*legacy=*/true);
      // They live as long as the process, so nobody has to count who uses them.
      defaults_.emplace_back(std::shared_ptr<void>(), stream);
    }
  }

  mutable std::shared_mutex mutex_;
  std::unordered_map<musaStream_t, std::shared_ptr<musaStream>> live_;
  std::vector<std::shared_ptr<musaStream>> ending_;
  std::vector<std::shared_ptr<musaStream>> defaults_;
  std::vector<Legacy> legacies_;
};

// musaStreamPerThread: made when first asked for, destroyed with its thread.
struct PerThread {
  std::vector<musaStream_t> streams =
      std::vector<musaStream_t>(static_cast<size_t>(device_count()));

  std::shared_ptr<musaStream> stream(int device) {
    require_device(device);
    musaStream_t& handle = streams[static_cast<size_t>(device)];
    if (handle == nullptr) {
      handle = Streams::instance().create(device, musaStreamDefault, kLeastPriority);
    }
    return Streams::instance().find(handle);
  }
  ~PerThread() {
    for (musaStream_t handle : streams) {
      if (handle != nullptr) (void)musaStreamDestroy(handle);
    }
  }
};

// The calling thread's turn on a stream, in the synchronous mode.
class Turn {
 public:
  explicit Turn(musaStream& stream) {
    Legacy& legacy = Streams::instance().legacy(stream.device);
    // Work that enqueues work has its stream's turn already.
    if (running_here == 0 && legacy.blocking_streams.load(std::memory_order_relaxed) > 0) {
      if (stream.legacy) alone_ = std::unique_lock(legacy.excluding);
      if (stream.blocking()) together_ = std::shared_lock(legacy.excluding);
    }
    in_order_ = std::unique_lock(stream.order);
    ++running_here;
  }
  ~Turn() { --running_here; }
  Turn(const Turn&) = delete;

 private:
  std::unique_lock<std::shared_mutex> alone_;
  std::shared_lock<std::shared_mutex> together_;
  std::unique_lock<std::recursive_mutex> in_order_;
};

// What must be done before the next work of the stream may run, beyond the stream's own.
std::vector<Queue::Point> legacy_dependencies(const musaStream& stream) {
  std::vector<Queue::Point> points;
  const auto add = [&points](const musaStream& other) {
    Queue::Point point = other.queue->last();
    if (!point.reached()) points.push_back(std::move(point));
  };
  if (stream.blocking()) add(*Streams::instance().default_stream(stream.device));
  if (stream.legacy) {
    for (const auto& other : Streams::instance().of_device(stream.device)) {
      if (other->blocking()) add(*other);
    }
  }
  return points;
}

}  // namespace

bool asynchronous() {
  static const bool value = number_from_environment("MUSA_LAUNCH_BLOCKING", 1) == 0;
  return value;
}

std::shared_ptr<musaStream> resolve(musaStream_t stream, int device) {
  if (stream == nullptr || stream == musaStreamLegacy) {
    return Streams::instance().default_stream(device);
  }
  if (stream == musaStreamPerThread) {
    thread_local PerThread mine;
    return mine.stream(device);
  }
  return Streams::instance().find(stream);
}

void submit(musaStream& stream, Task task) {
  if (record_in_capture(stream, task)) return;
  if (!stream.queue) {
    const Turn turn(stream);
    run(task, stream.device);
    return;
  }
  if (stream.queue->is_running_here()) {  // from within the stream's own work
    run(task, stream.device);
    return;
  }
  std::lock_guard lock(Streams::instance().legacy(stream.device).order);
  stream.queue->push(std::move(task), legacy_dependencies(stream));
}

void synchronize(musaStream& stream) {
  if (!stream.queue) {
    std::lock_guard wait(stream.order);
    return;
  }
  for (const Queue::Point& point : legacy_dependencies(stream)) point.wait();
  stream.queue->last().wait();
}

bool idle(musaStream& stream) {
  if (!stream.queue) return std::unique_lock(stream.order, std::try_to_lock).owns_lock();
  return legacy_dependencies(stream).empty() && stream.queue->last().reached();
}

void synchronize_device(int device) {
  for (const auto& stream : Streams::instance().of_device(device)) synchronize(*stream);
}

namespace {

// For calls that say it by an exception.
void require_no_blocking_error() {
  const musaError_t error = blocking_error();
  if (error != musaSuccess) throw std::runtime_error(musaGetErrorString(error));
}

}  // namespace

void synchronize(int device, musaStream_t stream) {
  try {
    const auto target = resolve(stream, device);
    require_not_capturing(*target);
    synchronize(*target);
  } catch (const Failure& failure) {
    throw std::runtime_error(musaGetErrorString(set_last_error(failure.error)));
  }
  require_no_blocking_error();  // nor what the stream's work has just left
}

void enqueue(musaStream_t stream, std::function<void()> work) {
  enqueue(current_device(), stream, std::move(work));
}

namespace {

template <class Resolve>
auto or_throw(Resolve resolve) -> decltype(resolve()) {
  try {
    return resolve();
  } catch (const Failure& failure) {
    throw std::invalid_argument(musaGetErrorString(failure.error));
  }
}

std::shared_ptr<musaStream> resolve_or_throw(musaStream_t stream, int device) {
  return or_throw([&] { return resolve(stream, device); });
}

// Lives as long as the process.
musaStream& default_or_throw(int device) {
  return or_throw([&]() -> musaStream& { return *Streams::instance().default_stream(device); });
}

}  // namespace

bool run_now(int device, musaStream_t stream, void (*work)(void*), void* argument,
             const char* name) {
  require_no_blocking_error();
  if (asynchronous() || captures_go_on()) return false;
  // A default stream lives as long as the process; only others have to be kept for the call.
  std::shared_ptr<musaStream> kept;
  const bool is_default = stream == nullptr || stream == musaStreamLegacy;
  if (!is_default) kept = resolve_or_throw(stream, device);
  musaStream& target = is_default ? default_or_throw(device) : *kept;
  if (name == nullptr) name = "work that nobody named";
  const Turn turn(target);
  const DeviceAccess access(name);
  work(argument);
  check_red_zones(device, name);
  report_divisions();
  return true;
}

void enqueue(int device, musaStream_t stream, std::function<void()> work, const char* name) {
  require_no_blocking_error();
  const auto target = resolve_or_throw(stream, device);
  try {
    submit(*target, {std::move(work), Task::Kind::DEVICE, name});
  } catch (const Failure& failure) {
    throw std::runtime_error(musaGetErrorString(set_last_error(failure.error)));
  }
}

musaError_t try_enqueue(musaStream_t stream, std::function<void()> work) {
  return try_enqueue(current_device(), stream, std::move(work));
}

// Not api(): that would take the work's own std::bad_alloc for the device's.
musaError_t try_enqueue(int device, musaStream_t stream, std::function<void()> work,
                        const char* name) {
  if (const musaError_t error = blocking_error(); error != musaSuccess) return error;
  try {
    submit(*resolve(stream, device), {std::move(work), Task::Kind::DEVICE, name});
    return musaSuccess;
  } catch (const Failure& failure) {
    return set_last_error(failure.error);
  }
}

}  // namespace musa::host

musaStream::musaStream(int device_, unsigned int flags_, int priority_, bool legacy_)
    : device(device_),
      flags(flags_),
      priority(priority_),
      legacy(legacy_),
      queue(musa::host::asynchronous() ? std::make_shared<musa::host::Queue>(device_) : nullptr) {}

using musa::host::api;
using musa::host::current_device;
using musa::host::require;
using musa::host::require_not_capturing;
using musa::host::resolve;
using musa::host::Streams;
using musa::host::Task;

musaError_t musaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api([&] {
    if (least != nullptr) *least = musa::host::kLeastPriority;
    if (greatest != nullptr) *greatest = musa::host::kGreatestPriority;
  });
}

musaError_t musaStreamCreate(musaStream_t* stream) {
  return musaStreamCreateWithPriority(stream, musaStreamDefault, musa::host::kLeastPriority);
}

musaError_t musaStreamCreateWithFlags(musaStream_t* stream, unsigned int flags) {
  return musaStreamCreateWithPriority(stream, flags, musa::host::kLeastPriority);
}

musaError_t musaStreamCreateWithPriority(musaStream_t* stream, unsigned int flags, int priority) {
  return api([&] {
    require(stream != nullptr);
    require(flags == musaStreamDefault || flags == musaStreamNonBlocking);
    musa::host::require_device(current_device());
    // Out of range is not an error: the nearest priority is taken.
    const int clamped = priority < musa::host::kGreatestPriority ? musa::host::kGreatestPriority
                        : priority > musa::host::kLeastPriority  ? musa::host::kLeastPriority
                                                                 : priority;
    *stream = Streams::instance().create(current_device(), flags, clamped);
  });
}

musaError_t musaStreamDestroy(musaStream_t stream) {
  return api([&] { Streams::instance().destroy(stream); });
}

musaError_t musaStreamSynchronize(musaStream_t stream) {
  const musaError_t error = api([&] {
    const auto target = resolve(stream, current_device());
    require_not_capturing(*target);
    musa::host::synchronize(*target);
    musa::host::trim_pools(target->device);
  });
  // Work that failed meanwhile is this call's to report.
  return error != musaSuccess ? error : musa::host::blocking_error();
}

musaError_t musaStreamQuery(musaStream_t stream) {
  return api([&] {
    const auto target = resolve(stream, current_device());
    require_not_capturing(*target);
    require(musa::host::idle(*target), musaErrorNotReady);
  });
}

musaError_t musaStreamGetPriority(musaStream_t stream, int* priority) {
  return api([&] {
    require(priority != nullptr);
    *priority = resolve(stream, current_device())->priority;
  });
}

musaError_t musaStreamGetFlags(musaStream_t stream, unsigned int* flags) {
  return api([&] {
    require(flags != nullptr);
    *flags = resolve(stream, current_device())->flags;
  });
}

musaError_t musaLaunchHostFunc(musaStream_t stream, musaHostFn_t function, void* user_data) {
  return api([&] {
    require(function != nullptr);
    const auto target = resolve(stream, current_device());
    Task task{[function, user_data] { function(user_data); }, Task::Kind::HOST, "host function"};
    if (target->queue || target->capturing.load()) {
      musa::host::submit(*target, std::move(task));
      return;
    }
    musa::host::synchronize(*target);
    // Not while holding the stream: the function may wait for a lock (Python's) whose owner is
    // about to enqueue here.
    musa::host::run(task, target->device);
  });
}
