// Live objects of one kind, behind the handles that callers hold. A handle that is not alive is
// musaErrorInvalidResourceHandle (or another error), never a crash.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "Api.h"

namespace musa::host {

template <typename T>
class Handles {
 public:
  explicit Handles(musaError_t dead = musaErrorInvalidResourceHandle) : dead_(dead) {}

  T* add(std::shared_ptr<T> object) {
    std::unique_lock lock(mutex_);
    T* handle = object.get();
    live_.emplace(handle, std::move(object));
    return handle;
  }

  std::shared_ptr<T> find(T* handle) const {
    std::shared_lock lock(mutex_);
    const auto found = live_.find(handle);
    require(found != live_.end(), dead_);
    return found->second;
  }

  // Who uses the object still, goes on.
  std::shared_ptr<T> remove(T* handle) {
    std::unique_lock lock(mutex_);
    const auto found = live_.find(handle);
    require(found != live_.end(), dead_);
    std::shared_ptr<T> object = std::move(found->second);
    live_.erase(found);
    return object;
  }

 private:
  const musaError_t dead_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<T*, std::shared_ptr<T>> live_;
};

}  // namespace musa::host
