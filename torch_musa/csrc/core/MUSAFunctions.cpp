#include "torch_musa/csrc/core/MUSAFunctions.h"

#include <musa_runtime.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace c10::musa {
namespace {

constexpr size_t kMaxDevices = std::numeric_limits<DeviceIndex>::max() + 1;

struct LifeCycle {
  std::atomic<bool> any{false};
  std::array<std::atomic<bool>, kMaxDevices> device{};
  std::atomic<bool> bad_fork{false};
};

LifeCycle& life_cycle() {
  static auto* state =
      new LifeCycle();  // outlives static destructors: tensors may be freed from them
  return *state;
}

[[noreturn]] C10_NOINLINE void throw_invalid_device_index(DeviceIndex device) {
  const DeviceIndex count = device_count();
  TORCH_CHECK(false, "MUSA error: invalid device ordinal: musa:", static_cast<int>(device), ". ",
              count == 0 ? std::string("There is no musa device")
                         : c10::str("There are ", static_cast<int>(count),
                                    " musa devices: indices 0 to ", count - 1));
}

void after_fork_in_child() {
  auto& state = life_cycle();
  if (state.any.load(std::memory_order_relaxed)) {
    state.bad_fork.store(true, std::memory_order_relaxed);
  }
}

}  // namespace

DeviceIndex device_count() noexcept {
  // Asked often (every index check) and fixed for the life of the process.
  static const DeviceIndex count = [] {
    int n = 0;
    if (musaGetDeviceCount(&n) != musaSuccess) {
      static_cast<void>(musaGetLastError());
      n = 0;
    }
    return static_cast<DeviceIndex>(std::min<int>(n, std::numeric_limits<DeviceIndex>::max()));
  }();
  return count;
}

void check_device_index(DeviceIndex device) {
  // Several times in every call of an operator: the words are elsewhere.
  if (C10_UNLIKELY(device < 0 || device >= device_count())) {
    throw_invalid_device_index(device);
  }
}

DeviceIndex current_device() {
  int device = 0;
  C10_MUSA_CHECK(musaGetDevice(&device));
  return static_cast<DeviceIndex>(device);
}

void set_device(DeviceIndex device) {
  check_device_index(device);
  // Nothing to do is nothing to fail: autograd's thread sets its device once more when work has
  // broken it meanwhile, and what it throws there ends the process.
  if (current_device() == device) {
    return;
  }
  C10_MUSA_CHECK(musaSetDevice(device));
}

DeviceIndex exchange_device(DeviceIndex device) {
  const DeviceIndex previous = current_device();
  if (previous != device) {
    set_device(device);
  }
  return previous;
}

DeviceIndex maybe_exchange_device(DeviceIndex device) {
  return device < 0 ? current_device() : exchange_device(device);
}

DeviceIndex resolve_device_index(DeviceIndex device) {
  if (device == -1) {
    return current_device();
  }
  check_device_index(device);
  return device;
}

void device_synchronize() { C10_MUSA_CHECK(musaDeviceSynchronize()); }

bool can_access_peer(DeviceIndex device, DeviceIndex peer) {
  check_device_index(device);
  check_device_index(peer);
  if (device == peer) {
    return true;
  }
  static std::mutex mutex;
  static std::map<std::pair<DeviceIndex, DeviceIndex>, bool> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace({device, peer}, false);
  if (is_new) {
    int accessible = 0;
    C10_MUSA_CHECK(musaDeviceCanAccessPeer(&accessible, device, peer));
    if (accessible != 0) {
      const MUSAGuard guard(device);
      const musaError_t error = musaDeviceEnablePeerAccess(peer, 0);
      if (error == musaErrorPeerAccessAlreadyEnabled) {
        static_cast<void>(musaGetLastError());
      } else {
        C10_MUSA_CHECK(error);
      }
    }
    entry->second = accessible != 0;
  }
  return entry->second;
}

void ensure_initialized(DeviceIndex device) {
  auto& state = life_cycle();
  TORCH_CHECK(!state.bad_fork.load(std::memory_order_relaxed),
              "Cannot re-initialize MUSA in forked subprocess. To use MUSA with multiprocessing, "
              "you must use the 'spawn' start method");
  if (C10_LIKELY(state.device[device].load(std::memory_order_relaxed))) {
    return;
  }
  static const int handler_installed = pthread_atfork(nullptr, nullptr, &after_fork_in_child);
  TORCH_INTERNAL_ASSERT(handler_installed == 0);
  state.device[device].store(true, std::memory_order_relaxed);
  state.any.store(true, std::memory_order_relaxed);
}

bool is_initialized(DeviceIndex device) noexcept {
  const auto& state = life_cycle();
  return device < 0 ? state.any.load(std::memory_order_relaxed)
                    : state.device[device].load(std::memory_order_relaxed);
}

bool in_bad_fork() noexcept { return life_cycle().bad_fork.load(std::memory_order_relaxed); }

}  // namespace c10::musa
