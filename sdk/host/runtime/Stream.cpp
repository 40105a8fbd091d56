#include "Stream.h"

#include <shared_mutex>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "Device.h"

namespace musa::host {
namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

class Streams {
 public:
  static Streams& instance() {
    static Streams* streams = new Streams;  // never destroyed, as the memory registry
    return *streams;
  }

  musaStream_t create(int device, unsigned int flags, int priority) {
    auto stream = make(device, flags, priority);
    std::unique_lock lock(mutex_);
    live_.emplace(stream.get(), stream);
    return stream.get();
  }

  void destroy(musaStream_t handle) {
    const std::shared_ptr<musaStream> stream = find(handle);
    synchronize(*stream);
    std::unique_lock lock(mutex_);
    require(live_.erase(handle) == 1, musaErrorInvalidResourceHandle);
  }

  std::shared_ptr<musaStream> find(musaStream_t handle) const {
    std::shared_lock lock(mutex_);
    auto found = live_.find(handle);
    require(found != live_.end(), musaErrorInvalidResourceHandle);
    return found->second;
  }

  std::shared_ptr<musaStream> default_stream(int device) const {
    require_device(device);
    return defaults_[static_cast<size_t>(device)];
  }

  std::vector<std::shared_ptr<musaStream>> of_device(int device) const {
    std::vector<std::shared_ptr<musaStream>> streams{default_stream(device)};
    std::shared_lock lock(mutex_);
    for (const auto& [handle, stream] : live_) {
      if (stream->device == device) streams.push_back(stream);
    }
    return streams;
  }

 private:
  Streams() {
    for (int device = 0; device < device_count(); ++device) {
      defaults_.push_back(make(device, musaStreamDefault, kLeastPriority));
    }
  }

  static std::shared_ptr<musaStream> make(int device, unsigned int flags, int priority) {
    auto stream = std::make_shared<musaStream>();
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    return stream;
  }

  mutable std::shared_mutex mutex_;
  std::unordered_map<musaStream_t, std::shared_ptr<musaStream>> live_;
  std::vector<std::shared_ptr<musaStream>> defaults_;
};

bool is_default(musaStream_t stream) {
  return stream == nullptr || stream == musaStreamLegacy || stream == musaStreamPerThread;
}

}  // namespace

std::shared_ptr<musaStream> resolve(musaStream_t stream, int device) {
  return is_default(stream) ? Streams::instance().default_stream(device)
                            : Streams::instance().find(stream);
}

void synchronize(musaStream& stream) { std::lock_guard wait(stream.order); }

void synchronize_device(int device) {
  for (const auto& stream : Streams::instance().of_device(device)) synchronize(*stream);
}

void synchronize(int device, musaStream_t stream) { synchronize(*resolve(stream, device)); }

void enqueue(musaStream_t stream, std::function<void()> work) {
  enqueue(current_device(), stream, std::move(work));
}

void enqueue(int device, musaStream_t stream, std::function<void()> work) {
  std::shared_ptr<musaStream> target;
  try {
    target = resolve(stream, device);
  } catch (const Failure& failure) {
    throw std::invalid_argument(musaGetErrorString(failure.error));
  }
  std::lock_guard in_order(target->order);
  work();
}

}  // namespace musa::host

using musa::host::api;
using musa::host::current_device;
using musa::host::require;
using musa::host::resolve;
using musa::host::Streams;

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
  return api([&] { musa::host::synchronize(*resolve(stream, current_device())); });
}

musaError_t musaStreamQuery(musaStream_t stream) {
  return api([&] {
    std::unique_lock idle(resolve(stream, current_device())->order, std::try_to_lock);
    require(idle.owns_lock(), musaErrorNotReady);
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
    musa::host::synchronize(*resolve(stream, current_device()));
    // Not while holding the stream: the function may wait for a lock (Python's) whose owner is
    // about to enqueue here.
    function(user_data);
  });
}
