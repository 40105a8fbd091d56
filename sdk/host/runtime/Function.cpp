// What is known of kernels: attributes, occupancy, launches by address.
#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "Api.h"
#include "Device.h"
#include "musa_runtime.h"

namespace musa::host {
namespace {

struct Function {
  KernelInfo info;
  int max_dynamic_shared;
  int carveout = -1;
};

struct Functions {
  std::shared_mutex mutex;
  std::unordered_map<const void*, Function> known;

  static Functions& instance() {
    static auto* functions = new Functions;  // kernels register from static constructors
    return *functions;
  }
};

musaDeviceProp properties() {
  require_device(current_device());
  musaDeviceProp prop;
  require(musaGetDeviceProperties(&prop, current_device()) == musaSuccess);
  return prop;
}

Function find_function(const void* function) {
  Functions& functions = Functions::instance();
  std::shared_lock lock(functions.mutex);
  const auto found = functions.known.find(function);
  require(found != functions.known.end(), musaErrorInvalidDeviceFunction);
  return found->second;
}

int max_threads(const Function& function, const musaDeviceProp& prop) {
  const int bound = function.info.max_threads_per_block;
  return bound > 0 ? std::min(bound, prop.maxThreadsPerBlock) : prop.maxThreadsPerBlock;
}

}  // namespace

void register_kernel(const void* function, const KernelInfo& info) {
  Functions& functions = Functions::instance();
  std::unique_lock lock(functions.mutex);
  constexpr int kDefaultShared = 48 << 10;
  functions.known.try_emplace(
      function, Function{info, kDefaultShared - static_cast<int>(info.static_shared)});
}

size_t max_dynamic_shared(const void* function) {
  Functions& functions = Functions::instance();
  std::shared_lock lock(functions.mutex);
  const auto found = functions.known.find(function);
  return found == functions.known.end() ? 48 << 10
                                        : static_cast<size_t>(found->second.max_dynamic_shared);
}

}  // namespace musa::host

using musa::host::api;
using musa::host::find_function;
using musa::host::require;

musaError_t musaFuncGetAttributes(musaFuncAttributes* attributes, const void* function) {
  return api([&] {
    require(attributes != nullptr);
    const musa::host::Function found = find_function(function);
    const musaDeviceProp prop = musa::host::properties();
    *attributes = {};
    attributes->sharedSizeBytes = found.info.static_shared;
    attributes->maxThreadsPerBlock = max_threads(found, prop);
    attributes->numRegs = found.info.registers;
    attributes->binaryVersion = attributes->ptxVersion = 10 * prop.major + prop.minor;
    attributes->maxDynamicSharedSizeBytes = found.max_dynamic_shared;
    attributes->preferredShmemCarveout = found.carveout;
  });
}

musaError_t musaFuncSetAttribute(const void* function, musaFuncAttribute attribute, int value) {
  return api([&] {
    const musa::host::Function found = find_function(function);
    const musaDeviceProp prop = musa::host::properties();
    musa::host::Functions& functions = musa::host::Functions::instance();
    std::unique_lock lock(functions.mutex);
    switch (attribute) {
      case musaFuncAttributeMaxDynamicSharedMemorySize:
        require(value >= 0 && static_cast<size_t>(value) + found.info.static_shared <=
                                  prop.sharedMemPerBlockOptin);
        functions.known.at(function).max_dynamic_shared = value;
        return;
      case musaFuncAttributePreferredSharedMemoryCarveout:
        require(value >= -1 && value <= 100);
        functions.known.at(function).carveout = value;
        return;
    }
    require(false);
  });
}

musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t dynamic_shared, unsigned int flags) {
  return api([&] {
    require(blocks != nullptr && block_size > 0);
    require((flags & ~musaOccupancyDisableCachingOverride) == 0);
    const musa::host::Function found = find_function(function);
    const musaDeviceProp prop = musa::host::properties();
    *blocks = 0;
    const size_t shared = found.info.static_shared + dynamic_shared;
    if (block_size > max_threads(found, prop) ||
        dynamic_shared > static_cast<size_t>(found.max_dynamic_shared)) {
      return;  // such a block does not run at all
    }
    // The scarcest of what a multiprocessor has: blocks, threads (in whole warps), registers,
    // shared memory.
    const int warps = (block_size + prop.warpSize - 1) / prop.warpSize;
    const int threads = warps * prop.warpSize;
    int most =
        std::min(prop.maxBlocksPerMultiProcessor, prop.maxThreadsPerMultiProcessor / threads);
    most =
        std::min(most, prop.regsPerMultiprocessor / (std::max(found.info.registers, 1) * threads));
    if (shared > 0) {
      most = std::min(most, static_cast<int>(prop.sharedMemPerMultiprocessor / shared));
    }
    *blocks = most;
  });
}

musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t dynamic_shared) {
  return musaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, block_size, dynamic_shared, musaOccupancyDefault);
}

musaError_t musaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, musaStream_t stream) {
  return api([&] {
    const musa::host::Function found = find_function(function);
    require(found.info.launch != nullptr, musaErrorInvalidDeviceFunction);
    const musaDeviceProp prop = musa::host::properties();
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    const auto fits = [](unsigned n, int most) {
      return n > 0 && n <= static_cast<unsigned>(most);
    };
    require(fits(grid.x, prop.maxGridSize[0]) && fits(grid.y, prop.maxGridSize[1]) &&
                fits(grid.z, prop.maxGridSize[2]) && fits(block.x, prop.maxThreadsDim[0]) &&
                fits(block.y, prop.maxThreadsDim[1]) && fits(block.z, prop.maxThreadsDim[2]) &&
                threads <= static_cast<uint64_t>(prop.maxThreadsPerBlock),
            musaErrorInvalidConfiguration);
    require(threads <= static_cast<uint64_t>(max_threads(found, prop)),
            musaErrorLaunchOutOfResources);
    require(shared <= static_cast<size_t>(found.max_dynamic_shared));
    found.info.launch(grid, block, arguments, shared, stream);
  });
}
