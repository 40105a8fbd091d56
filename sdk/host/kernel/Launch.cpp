// Launches: what a device refuses, and the way from a grid to its blocks.
#undef NDEBUG  // for the declaration of __assert_fail
#include <cassert>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../runtime/Api.h"
#include "Block.h"
#include "musa_kernel/constant.h"

constinit thread_local uint3 threadIdx __attribute__((tls_model("initial-exec"))) = {0, 0, 0};
constinit thread_local uint3 blockIdx __attribute__((tls_model("initial-exec"))) = {0, 0, 0};
constinit thread_local dim3 blockDim __attribute__((tls_model("initial-exec"))) = {1, 1, 1};
constinit thread_local dim3 gridDim __attribute__((tls_model("initial-exec"))) = {1, 1, 1};

namespace musa::host {
namespace {

// A piece of this many threads is worth handing to another core; where threads wait for each other
// every one of them is, for each costs as much as hundreds that do not.
constexpr int64_t kThreadsPerPiece = 8192;
constexpr int64_t kWaitingThreadsPerPiece = 256;

const musaDeviceProp& properties() {
  static const musaDeviceProp value = [] {
    musaDeviceProp properties{};
    musaGetDeviceProperties(&properties, 0);
    return properties;
  }();
  return value;
}

musaError_t refusal(const LaunchConfig& config, const KernelFacts& facts) {
  const musaDeviceProp& device = properties();
  const uint64_t block[] = {config.block.x, config.block.y, config.block.z};
  const uint64_t grid[] = {config.grid.x, config.grid.y, config.grid.z};
  for (int i = 0; i < 3; ++i) {
    if (block[i] == 0 || block[i] > static_cast<uint64_t>(device.maxThreadsDim[i]) ||
        grid[i] == 0 || grid[i] > static_cast<uint64_t>(device.maxGridSize[i])) {
      return musaErrorInvalidConfiguration;
    }
  }
  if (block[0] * block[1] * block[2] > static_cast<uint64_t>(device.maxThreadsPerBlock)) {
    return musaErrorInvalidConfiguration;
  }
  const unsigned int allowed = facts.max_threads.load(std::memory_order_relaxed);
  if (allowed != 0 && block[0] * block[1] * block[2] > allowed) {
    return musaErrorLaunchOutOfResources;
  }
  // CUDA's code for it; flash attention's "invalid argument" on small cards is this one.
  const size_t fixed = facts.static_shared_bytes.load(std::memory_order_relaxed);
  if (config.shared_bytes > shared_limit() || config.shared_bytes + fixed > shared_limit()) {
    return musaErrorInvalidValue;
  }
  return musaSuccess;
}

// As on a card nothing has run: the bounds are checked before a thread's first statement. Where
// the launch has returned already its error can only be the device's.
void report(const LaunchSite& site, const LaunchConfig& config, unsigned int allowed) {
  std::fprintf(stderr,
               "musart: kernel '%s' launched at %s:%u with %u threads a block: its "
               "__launch_bounds__ allow %u\n",
               site.kernel, site.file, site.line, config.block.x * config.block.y * config.block.z,
               allowed);
  std::fflush(stderr);
  if (asynchronous()) set_sticky_error(musaErrorLaunchOutOfResources);
}

void report(const KernelFault& fault) {
  std::fprintf(stderr, "musart: %s\n", fault.what());
  std::fflush(stderr);
  set_sticky_error(fault.error);
}

}  // namespace

musaError_t launch_grid(const LaunchSite& site, const LaunchConfig& config, KernelFacts& facts,
                        ThreadLoop threads) {
  if (const musaError_t error = blocking_error(); error != musaSuccess) return error;
  if (const musaError_t error = refusal(config, facts); error != musaSuccess) {
    return set_last_error(error);
  }
  int device = 0;
  if (const musaError_t error = musaGetDevice(&device); error != musaSuccess) return error;
  const auto work = [site, config, &facts, threads = std::move(threads)] {
    Grid grid{site, config, facts, threads};
    const int64_t blocks = int64_t{config.grid.x} * config.grid.y * config.grid.z;
    const int64_t threads_per_block = int64_t{config.block.x} * config.block.y * config.block.z;
    const int64_t piece = facts.synchronises.load(std::memory_order_relaxed)
                              ? kWaitingThreadsPerPiece
                              : kThreadsPerPiece;
    try {
      parallel_for(0, blocks, (piece + threads_per_block - 1) / threads_per_block,
                   [&](int64_t begin, int64_t end) { BlockRunner::mine().run(grid, begin, end); });
    } catch (const KernelFault& fault) {
      report(fault);
    } catch (const LaunchBoundsExceeded& bounds) {
      facts.max_threads.store(bounds.allowed, std::memory_order_relaxed);
      report(site, config, bounds.allowed);
    }
  };
  const musaError_t refused = try_enqueue(device, config.stream, work, site.kernel);
  if (refused != musaSuccess) return refused;
  if (const musaError_t error = blocking_error(); error != musaSuccess) return error;
  // What the launch has just found out of the kernel.
  const musaError_t error = refusal(config, facts);
  return error == musaErrorLaunchOutOfResources ? set_last_error(error) : musaSuccess;
}

// ---- what kernels call
// ---------------------------------------------------------------------------

namespace {

BlockRunner& runner(const char* operation) {
  BlockRunner* runner = BlockRunner::active();
  if (runner == nullptr) {
    std::fprintf(stderr, "musart: %s outside a kernel\n", operation);
    std::abort();
  }
  return *runner;
}

}  // namespace

int block_barrier(Vote vote, bool predicate, const std::source_location& where) {
  return runner("__syncthreads").barrier(vote, predicate, where);
}

void warp_meeting(const LaneMask& mask, void* payload, WarpComplete complete, const char* operation,
                  const std::source_location& where) {
  runner(operation).meet(mask, payload, complete, operation, where);
}

LaneMask converged_lanes(const std::source_location& where) {
  return runner("__activemask").converged(where);
}

void* shared_variable(const SharedVariable& variable) {
  return runner("__shared__").variable(variable);
}

void* dynamic_shared() { return runner("__shared__").dynamic(); }

constinit thread_local unsigned int atomics_left __attribute__((tls_model("initial-exec"))) =
    kAtomicsInARow;

void take_turns() {
  atomics_left = kAtomicsInARow;
  if (BlockRunner* runner = BlockRunner::active(); runner != nullptr) runner->take_turns();
}

constinit thread_local unsigned int block_threads __attribute__((tls_model("initial-exec"))) = 0;

void exceed_launch_bounds(unsigned int allowed) {
  if (BlockRunner::active() != nullptr) throw LaunchBoundsExceeded{allowed};
}

void count_constant(size_t& bytes_of_source, size_t bytes, const char* name, const char* file,
                    unsigned int line) {
  const bool fitted = bytes_of_source <= kConstantBytes;
  bytes_of_source += bytes;
  if (!fitted || bytes_of_source <= kConstantBytes) return;
  std::fprintf(
      stderr,
      "musart: %s:%u: with '%s' the __constant__ variables of this source have %zu bytes; a "
      "device has %zu. No kernel runs: pass large tables as arguments, or make them "
      "__device__ variables\n",
      file, line, name, bytes_of_source, kConstantBytes);
  std::fflush(stderr);
  set_sticky_error(musaErrorInvalidDeviceFunction);
}

void kernel_fault(musaError_t error, const char* what) { runner(what).fail(error, what); }

bool inside_kernel() { return BlockRunner::active() != nullptr; }

int warp_size() { return properties().warpSize; }

}  // namespace musa::host

// Declared without throwing, so the kernel is given up instead of unwound.
extern "C" MUSART_API void musa_host_assert_fail(const char* expression, const char* file,
                                                 unsigned int line, const char* function) noexcept {
  musa::host::BlockRunner* runner = musa::host::BlockRunner::active();
  if (runner == nullptr) __assert_fail(expression, file, line, function);
  std::fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
               file, line, function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
               threadIdx.z, expression);
  runner->give_up(musaErrorAssert, "an assertion failed");
}
