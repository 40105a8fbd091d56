// Devices: CUDA's, counted as MUSA_VISIBLE_DEVICES says and described as the chip that MUSA_ARCH
// names. Within a process that CUDA_VISIBLE_DEVICES restricts, the numbers are among what it
// leaves.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Api.h"
#include "Profile.h"
#include "VisibleDevices.h"
#include "musa_cuda.h"

namespace musa::cuda {
namespace {

// MUSA_LAUNCH_BLOCKING=1 is CUDA's switch of that name, which it reads at its first call.
__attribute__((constructor)) void take_launch_blocking() {
  const char* blocking = std::getenv("MUSA_LAUNCH_BLOCKING");
  if (blocking != nullptr && *blocking != '\0') setenv("CUDA_LAUNCH_BLOCKING", blocking, 0);
}

struct Devices {
  std::vector<int> ordinals;
  cudaError_t error = cudaSuccess;  // why there are none
  bool first_is_first = true;       // CUDA's device 0 is this process' too
};

// How many cards the driver has, by its management library; -1 where that cannot say, or where
// CUDA_VISIBLE_DEVICES (indices, UUIDs, slices of a card) leaves a part of them. Unlike
// cudaGetDeviceCount it starts nothing, so that a process which has only counted may still fork.
int count_without_starting() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  void* library = visible == nullptr ? dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return -1;
  using Step = int (*)();
  using Count = int (*)(unsigned*);
  const auto start = reinterpret_cast<Step>(dlsym(library, "nvmlInit_v2"));
  const auto ask = reinterpret_cast<Count>(dlsym(library, "nvmlDeviceGetCount_v2"));
  const auto stop = reinterpret_cast<Step>(dlsym(library, "nvmlShutdown"));
  int found = -1;
  if (start != nullptr && ask != nullptr && stop != nullptr && start() == 0) {
    unsigned count = 0;
    if (ask(&count) == 0) found = static_cast<int>(count);
    stop();
  }
  dlclose(library);
  return found;
}

const Devices& devices() {
  static const auto* found = [] {
    auto* made = new Devices;  // calls may come until the process ends
    int present = count_without_starting();
    if (present < 0) made->error = cudaGetDeviceCount(&present);
    if (made->error != cudaSuccess) {
      (void)cudaGetLastError();
      present = 0;
    }
    made->ordinals = musa::visible_devices(present);
    made->first_is_first = made->ordinals.empty() || made->ordinals.front() == 0;
    return made;
  }();
  return *found;
}

musaError_t no_device() {
  const cudaError_t error = devices().error;
  return refuse(error == cudaSuccess ? musaErrorNoDevice : error_of(error));
}

bool known(int device) {
  return device >= 0 && device < static_cast<int>(devices().ordinals.size());
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) (void)cudaGetLastError();
  return value;
}

}  // namespace

int ordinal(int device) { return known(device) ? devices().ordinals[device] : -1; }

int device_of(int ordinal) {
  const std::vector<int>& all = devices().ordinals;
  const auto found = std::find(all.begin(), all.end(), ordinal);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

void settle_thread() {
  static constinit thread_local bool settled = false;
  if (settled) return;
  settled = true;
  if (!devices().first_is_first) (void)cudaSetDevice(devices().ordinals.front());
}

}  // namespace musa::cuda

using musa::cuda::devices;
using musa::cuda::done;
using musa::cuda::known;
using musa::cuda::ordinal;
using musa::cuda::refuse;

musaError_t musaGetDeviceCount(int* count) {
  if (count == nullptr) return refuse(musaErrorInvalidValue);
  *count = static_cast<int>(devices().ordinals.size());
  return *count > 0 ? musaSuccess : musa::cuda::no_device();
}

musaError_t musaGetDevice(int* device) {
  if (device == nullptr) return refuse(musaErrorInvalidValue);
  if (devices().ordinals.empty()) return musa::cuda::no_device();
  musa::cuda::settle_thread();
  int current = 0;
  const cudaError_t error = cudaGetDevice(&current);
  if (error != cudaSuccess) return done(error);
  *device = musa::cuda::device_of(current);
  // Somebody (torch.cuda) has set a device that this process does not see as MUSA's.
  return *device >= 0 ? musaSuccess : refuse(musaErrorInvalidDevice);
}

musaError_t musaSetDevice(int device) {
  if (devices().ordinals.empty()) return musa::cuda::no_device();
  if (!known(device)) return refuse(musaErrorInvalidDevice);
  musa::cuda::settle_thread();
  return done(cudaSetDevice(ordinal(device)));
}

musaError_t musaGetDeviceProperties(musaDeviceProp* prop, int device) {
  if (prop == nullptr) return refuse(musaErrorInvalidValue);
  if (devices().ordinals.empty()) return musa::cuda::no_device();
  if (!known(device)) return refuse(musaErrorInvalidDevice);
  const int card = ordinal(device);
  cudaDeviceProp cuda;
  const cudaError_t error = cudaGetDeviceProperties(&cuda, card);
  if (error != cudaSuccess) return done(error);
  const musa::Profile& arch = musa::profile();
  *prop = {};
  std::snprintf(prop->name, sizeof(prop->name), "%s as %s", cuda.name, arch.name);
  std::memcpy(prop->uuid.bytes, cuda.uuid.bytes, sizeof(prop->uuid.bytes));
  // What op code asks before it chooses a way: the chip's, as the limits are.
  prop->major = arch.major;
  prop->minor = arch.minor;
  // What kernels run on: the card's, the warp size too.
  prop->totalGlobalMem = cuda.totalGlobalMem;
  prop->sharedMemPerBlock = cuda.sharedMemPerBlock;
  prop->sharedMemPerBlockOptin = cuda.sharedMemPerBlockOptin;
  prop->sharedMemPerMultiprocessor = cuda.sharedMemPerMultiprocessor;
  prop->regsPerBlock = cuda.regsPerBlock;
  prop->regsPerMultiprocessor = cuda.regsPerMultiprocessor;
  prop->warpSize = cuda.warpSize;
  prop->memPitch = cuda.memPitch;
  prop->maxThreadsPerBlock = cuda.maxThreadsPerBlock;
  prop->maxThreadsPerMultiProcessor = cuda.maxThreadsPerMultiProcessor;
  prop->maxBlocksPerMultiProcessor = cuda.maxBlocksPerMultiProcessor;
  for (int d = 0; d < 3; ++d) {
    prop->maxThreadsDim[d] = cuda.maxThreadsDim[d];
    prop->maxGridSize[d] = cuda.maxGridSize[d];
  }
  prop->clockRate = musa::cuda::attribute(cudaDevAttrClockRate, card);
  prop->memoryClockRate = musa::cuda::attribute(cudaDevAttrMemoryClockRate, card);
  prop->memoryBusWidth = cuda.memoryBusWidth;
  prop->l2CacheSize = cuda.l2CacheSize;
  prop->totalConstMem = cuda.totalConstMem;
  prop->multiProcessorCount = cuda.multiProcessorCount;
  prop->integrated = cuda.integrated;
  prop->canMapHostMemory = cuda.canMapHostMemory;
  prop->concurrentKernels = cuda.concurrentKernels;
  prop->asyncEngineCount = cuda.asyncEngineCount;
  prop->unifiedAddressing = cuda.unifiedAddressing;
  prop->managedMemory = cuda.managedMemory;
  prop->streamPrioritiesSupported = cuda.streamPrioritiesSupported;
  prop->isMultiGpuBoard = cuda.isMultiGpuBoard;
  prop->ECCEnabled = cuda.ECCEnabled;
  prop->pciDomainID = cuda.pciDomainID;
  prop->pciBusID = cuda.pciBusID;
  prop->pciDeviceID = cuda.pciDeviceID;
  return musaSuccess;
}

musaError_t musaDeviceSynchronize() {
  musa::cuda::settle_thread();
  return done(cudaDeviceSynchronize());
}

musaError_t musaDeviceCanAccessPeer(int* can_access, int device, int peer_device) {
  if (can_access == nullptr) return refuse(musaErrorInvalidValue);
  if (!known(device) || !known(peer_device)) return refuse(musaErrorInvalidDevice);
  return done(cudaDeviceCanAccessPeer(can_access, ordinal(device), ordinal(peer_device)));
}

musaError_t musaDeviceEnablePeerAccess(int peer_device, unsigned int flags) {
  if (!known(peer_device)) return refuse(musaErrorInvalidDevice);
  musa::cuda::settle_thread();
  return done(cudaDeviceEnablePeerAccess(ordinal(peer_device), flags));
}

musaError_t musaDeviceDisablePeerAccess(int peer_device) {
  if (!known(peer_device)) return refuse(musaErrorInvalidDevice);
  musa::cuda::settle_thread();
  return done(cudaDeviceDisablePeerAccess(ordinal(peer_device)));
}

musaError_t musaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  musa::cuda::settle_thread();
  return done(cudaDeviceGetStreamPriorityRange(least, greatest));
}

// Versions are the toolkit's that is stood in for; a driver that is too old says so by its errors.
musaError_t musaDriverGetVersion(int* version) {
  if (version == nullptr) return refuse(musaErrorInvalidValue);
  *version = MUSART_VERSION;
  return musaSuccess;
}

musaError_t musaRuntimeGetVersion(int* version) { return musaDriverGetVersion(version); }
