// Kernel side of the host stand-in: what mcc puts in front of a `.mu` source, and nobody else
// includes. Blocks run in parallel on the toolkit's pool; the threads of a block run one after the
// other, so barriers and shared memory do not exist here and using them does not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "musa_host.h"
#include "musa_vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
// A parameter that no thread changes, `const T __grid_constant__ x`, need not be copied for every
// thread.
#define __grid_constant__ &
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

// Where the calling thread stands in its launch. Plain data in the initial TLS block, so that
// reading it is one load from a shared library too.
#define MUSA_HOST_TLS constinit thread_local __attribute__((tls_model("initial-exec")))
inline MUSA_HOST_TLS uint3 threadIdx{0, 0, 0};
inline MUSA_HOST_TLS uint3 blockIdx{0, 0, 0};
inline MUSA_HOST_TLS dim3 blockDim{1, 1, 1};
inline MUSA_HOST_TLS dim3 gridDim{1, 1, 1};
#undef MUSA_HOST_TLS

namespace musa::host {

template <bool kHostHasBarriers = false>
inline void barrier() {
  static_assert(kHostHasBarriers,
                "the host stand-in runs the threads of a block one after the other: it has no "
                "__syncthreads()");
}

// The limits of the architecture profiles in mp_21 and later: 1,024 threads a block, CUDA's grid
// limits.
constexpr uint64_t kMaxThreadsPerBlock = 1024;
constexpr uint64_t kMaxGridX = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMaxGridYZ = 65535;
constexpr size_t kMaxSharedBytes = 48 * 1024;

// What stands between <<< and >>>.
struct LaunchConfig {
  LaunchConfig(dim3 grid_, dim3 block_, size_t shared_bytes_ = 0, musaStream_t stream_ = nullptr)
      : grid(grid_), block(block_), shared_bytes(shared_bytes_), stream(stream_) {}

  bool valid() const {
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    return threads != 0 && threads <= kMaxThreadsPerBlock && grid.x != 0 && grid.x <= kMaxGridX &&
           grid.y != 0 && grid.y <= kMaxGridYZ && grid.z != 0 && grid.z <= kMaxGridYZ &&
           shared_bytes <= kMaxSharedBytes;
  }

  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  musaStream_t stream;
};

// A piece of this many threads is worth handing to another core.
constexpr int64_t kThreadsPerPiece = 8192;

// kernel<<<config>>>(args...): checks as a device does (a bad configuration is the calling thread's
// last error), then runs in the order of the stream.
template <typename Kernel, typename... Args>
void launch(const LaunchConfig& config, Kernel kernel, Args... args) {
  if (!config.valid()) {
    set_last_error(musaErrorInvalidConfiguration);
    return;
  }
  enqueue(config.stream, [config, kernel, args...] {
    const dim3 grid = config.grid;
    const dim3 block = config.block;
    const int64_t blocks = int64_t{grid.x} * grid.y * grid.z;
    const int64_t threads = int64_t{block.x} * block.y * block.z;
    parallel_for(0, blocks, (kThreadsPerPiece + threads - 1) / threads,
                 [&](int64_t begin, int64_t end) {
                   gridDim = grid;
                   blockDim = block;
                   for (int64_t index = begin; index < end; ++index) {
                     blockIdx.x = static_cast<unsigned int>(index % grid.x);
                     blockIdx.y = static_cast<unsigned int>(index / grid.x % grid.y);
                     blockIdx.z = static_cast<unsigned int>(index / grid.x / grid.y);
                     for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z) {
                       for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y) {
                         for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) {
                           kernel(args...);
                         }
                       }
                     }
                   }
                 });
  });
}

}  // namespace musa::host

#define __syncthreads() ::musa::host::barrier<>()
#define __syncwarp(...) ::musa::host::barrier<>()
#define __shared__                                                                       \
  static_assert(false,                                                                   \
                "the host stand-in runs the threads of a block one after the other: it " \
                "has no __shared__ memory");
