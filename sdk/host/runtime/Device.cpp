#include "Device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Capture.h"
#include "Environment.h"
#include "Pool.h"
#include "Profile.h"
#include "Stream.h"
#include "VisibleDevices.h"

namespace musa::host {
namespace {

constexpr int kDefaultDevices = 2;
constexpr size_t kMiB = size_t{1} << 20;

constinit thread_local int current MUSART_FAST_TLS = 0;

std::mutex peers_mutex;
std::set<std::pair<int, int>> peers;  // (device, peer it may access)

// Half of the machine's memory, shared out: what is left serves the host side of the same process.
size_t default_memory() {
  const size_t physical =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t share = physical / 2 / static_cast<size_t>(std::max(device_count(), 1));
  return std::max(share / kMiB, size_t{256}) * kMiB;
}

const std::vector<int>& devices() {
  static const std::vector<int> visible = visible_devices(static_cast<int>(
      std::min<int64_t>(number_from_environment("TORCH_MUSA_HOST_DEVICES", kDefaultDevices), 64)));
  return visible;
}

}  // namespace

int device_count() {
  // Asked several times in every call of an operator.
  static constinit std::atomic<int> known{-1};
  int count = known.load(std::memory_order_relaxed);
  if (count < 0) [[unlikely]] {
    count = static_cast<int>(devices().size());
    known.store(count, std::memory_order_relaxed);
  }
  return count;
}

int physical_device(int device) { return devices()[static_cast<size_t>(device)]; }

int visible_device(int physical) {
  const auto found = std::find(devices().begin(), devices().end(), physical);
  return found == devices().end() ? -1 : static_cast<int>(found - devices().begin());
}

int current_device() { return current; }

void require_device(int device) {
  require(device_count() > 0, musaErrorNoDevice);
  require(device >= 0 && device < device_count(), musaErrorInvalidDevice);
}

size_t device_memory(int device) {
  static const std::vector<int64_t> mib = numbers_from_environment("TORCH_MUSA_HOST_MEMORY");
  if (mib.empty()) return default_memory();
  // The last of too few goes for the others.
  const size_t index = std::min(static_cast<size_t>(physical_device(device)), mib.size() - 1);
  return mib[index] > 0 ? static_cast<size_t>(mib[index]) * kMiB : default_memory();
}

namespace {

// Not by a fork, which leaves no device to ask about.
bool broken_by_work() {
  const musaError_t error = sticky_error.load(std::memory_order_relaxed);
  return error != musaSuccess && error != musaErrorInitializationError;
}

}  // namespace

bool peer_enabled(int device, int peer) {
  std::lock_guard lock(peers_mutex);
  return peers.count({device, peer}) != 0;
}

}  // namespace musa::host

using musa::host::api;
using musa::host::require;
using musa::host::require_device;

musaError_t musaGetDeviceCount(int* count) {
  return api([&] {
    require(count != nullptr);
    *count = musa::host::device_count();
    require(*count > 0, musaErrorNoDevice);
  });
}

// The one call that a broken device leaves alone, as CUDA's: it asks the thread, not the device.
// Whoever restores the device on the way out of a failure could not end otherwise.
musaError_t musaGetDevice(int* device) {
  if (device != nullptr && musa::host::broken_by_work() && !musa::host::in_host_function) {
    *device = musa::host::current;
    return musaSuccess;
  }
  return api([&] {
    require(device != nullptr);
    require(musa::host::device_count() > 0, musaErrorNoDevice);
    *device = musa::host::current;
  });
}

musaError_t musaSetDevice(int device) {
  return api([&] {
    require_device(device);
    musa::host::current = device;
  });
}

musaError_t musaGetDeviceProperties(musaDeviceProp* prop, int device) {
  return api([&] {
    require(prop != nullptr);
    require_device(device);
    const musa::Profile& arch = musa::profile();
    *prop = {};
    std::snprintf(prop->name, sizeof(prop->name), "MUSA host stand-in (%s)", arch.name);
    const int physical = musa::host::physical_device(device);
    std::snprintf(prop->uuid.bytes, sizeof(prop->uuid.bytes), "musa-host-%d", physical);
    prop->totalGlobalMem = musa::host::device_memory(device);
    prop->sharedMemPerBlock = 48 << 10;
    prop->sharedMemPerBlockOptin = 48 << 10;
    prop->sharedMemPerMultiprocessor = 96 << 10;
    prop->regsPerBlock = 65536;
    prop->regsPerMultiprocessor = 65536;
    prop->warpSize = arch.warp_size;
    prop->memPitch = 0x7fffffff;
    prop->maxThreadsPerBlock = 1024;
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->maxBlocksPerMultiProcessor = 16;
    prop->maxThreadsDim[0] = 1024;
    prop->maxThreadsDim[1] = 1024;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 0x7fffffff;
    prop->maxGridSize[1] = 65535;
    prop->maxGridSize[2] = 65535;
    prop->clockRate = 1000000;
    prop->memoryClockRate = 1000000;
    prop->memoryBusWidth = 64;
    prop->l2CacheSize = 4 << 20;
    prop->totalConstMem = 64 << 10;
    prop->major = arch.major;
    prop->minor = arch.minor;
    prop->multiProcessorCount = static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
    prop->canMapHostMemory = 1;
    prop->concurrentKernels = 1;
    prop->asyncEngineCount = 1;
    prop->unifiedAddressing = 1;
    prop->managedMemory = 1;
    prop->streamPrioritiesSupported = 1;
    prop->pciBusID = physical;
  });
}

musaError_t musaDeviceSynchronize() {
  const musaError_t error = api([&] {
    require_device(musa::host::current);
    musa::host::require_no_capture(musa::host::current);
    musa::host::synchronize_device(musa::host::current);
    musa::host::trim_pools(musa::host::current);
  });
  // Work that failed meanwhile is this call's to report.
  return error != musaSuccess ? error : musa::host::blocking_error();
}

musaError_t musaDeviceCanAccessPeer(int* can_access, int device, int peer_device) {
  return api([&] {
    require(can_access != nullptr);
    require_device(device);
    require_device(peer_device);
    *can_access = device != peer_device ? 1 : 0;
  });
}

musaError_t musaDeviceEnablePeerAccess(int peer_device, unsigned int flags) {
  return api([&] {
    require_device(peer_device);
    require(flags == 0);
    require(peer_device != musa::host::current, musaErrorInvalidDevice);
    std::lock_guard lock(musa::host::peers_mutex);
    require(musa::host::peers.insert({musa::host::current, peer_device}).second,
            musaErrorPeerAccessAlreadyEnabled);
  });
}

musaError_t musaDeviceDisablePeerAccess(int peer_device) {
  return api([&] {
    require_device(peer_device);
    std::lock_guard lock(musa::host::peers_mutex);
    require(musa::host::peers.erase({musa::host::current, peer_device}) == 1,
            musaErrorPeerAccessNotEnabled);
  });
}

musaError_t musaDriverGetVersion(int* version) {
  return api([&] {
    require(version != nullptr);
    *version = MUSART_VERSION;
  });
}

musaError_t musaRuntimeGetVersion(int* version) { return musaDriverGetVersion(version); }
