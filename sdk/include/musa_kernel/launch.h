// kernel<<<grid, block, shared, stream>>>(args...), which mcc turns into a call of launch(), and
// musaLaunchKernel.
#pragma once

#include <type_traits>
#include <utility>

#include "index.h"
#include "musa_runtime.h"

namespace musa::host {

// One of these for every launch that the compiler sees, per instantiation.
template <typename Kernel, typename... Args>
inline KernelFacts kernel_facts;

template <typename Kernel, typename... Args>
musaError_t launch(const LaunchSite& site, const LaunchConfig& config, Kernel kernel,
                   Args... args) {
  return launch_grid(site, config, kernel_facts<Kernel, Args...>, [kernel, args...](uint3 first) {
    const dim3 block = blockDim;
    for (unsigned int z = first.z; z < block.z; ++z) {
      threadIdx.z = z;
      for (unsigned int y = first.y; y < block.y; ++y) {
        threadIdx.y = y;
        for (unsigned int x = first.x; x < block.x; ++x) {
          threadIdx.x = x;
          kernel(args...);
          // The thread waited: the block's other threads have their own ways to run.
          if (waited != nullptr) return;
        }
        first.x = 0;
      }
      first.y = 0;
    }
  });
}

}  // namespace musa::host

// ---- calls that name a kernel ------------------------------------------------------------------
//
// The toolkit takes `const void*`; here the kernel's type is needed, for it says what the arguments
// are. mcc drops a cast to void* in front of a kernel's name in these calls.

template <typename... Parameters>
musaError_t musaLaunchKernel(const ::musa::host::LaunchSite& site, void (*kernel)(Parameters...),
                             dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                             musaStream_t stream = nullptr) {
  if (kernel == nullptr) return ::musa::host::set_last_error(musaErrorInvalidDeviceFunction);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return ::musa::host::launch(site, ::musa::host::LaunchConfig(grid, block, shared_bytes, stream),
                                kernel,
                                *static_cast<std::remove_cvref_t<Parameters>*>(arguments[I])...);
  }(std::index_sequence_for<Parameters...>{});
}

namespace musa::host {

// The runtime answers questions only about functions that it knows to be kernels.
template <typename... Parameters>
const void* known_kernel(void (*kernel)(Parameters...)) {
  const auto* address = reinterpret_cast<const void*>(kernel);
  if (kernel != nullptr) register_kernel(address, KernelInfo{});
  return address;
}

}  // namespace musa::host

template <typename... Parameters>
musaError_t musaFuncGetAttributes(musaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return musaFuncGetAttributes(attributes, ::musa::host::known_kernel(kernel));
}

template <typename... Parameters>
musaError_t musaFuncSetAttribute(void (*kernel)(Parameters...), musaFuncAttribute attribute,
                                 int value) {
  return musaFuncSetAttribute(::musa::host::known_kernel(kernel), attribute, value);
}

template <typename... Parameters>
musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          void (*kernel)(Parameters...),
                                                          int block_size, size_t dynamic_shared) {
  return musaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, ::musa::host::known_kernel(kernel),
                                                       block_size, dynamic_shared);
}
