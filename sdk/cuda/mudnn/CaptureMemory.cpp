#include "CaptureMemory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

namespace musa::dnn::internal {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

using Pool = std::pair<c10::DeviceIndex, c10::MempoolId_t>;

// Pools of captures, known by the number that CUDA gives each capture. A graph holds one reference;
// its end may come on any thread, at a time when no CUDA call is allowed: it is noted, and the next
// call made during a capture gives the memory back.
struct Pools {
  std::mutex mutex;
  std::unordered_set<uint64_t> held;
  std::vector<Pool> ended;
};

Pools& pools() {
  static auto* all = new Pools;  // graphs may end after the process' statics
  return *all;
}

// Beyond the numbers that torch.cuda gives its own pools.
constexpr uint64_t kFirst = uint64_t{1} << 62;

void end(void* pool) {
  auto* mine = static_cast<Pool*>(pool);
  const std::lock_guard lock(pools().mutex);
  pools().ended.push_back(*mine);
  delete mine;
}

void release_ended() {
  std::vector<Pool> ended;
  {
    const std::lock_guard lock(pools().mutex);
    ended.swap(pools().ended);
  }
  for (const auto& [device, pool] : ended) allocator::releasePool(device, pool);
}

// Whether nobody has used the pool yet: then it keeps the reference that comes with its first use.
bool is_new(const Pool& pool) {
  const std::lock_guard lock(pools().mutex);
  return pools().held.insert(pool.second.second ^ (uint64_t(pool.first) << 48)).second;
}

// For a stream that is not captured: a pool that nothing is taken from. One for each thread, since
// an allocator takes a pool from one user at a time.
uint64_t unused_pool() {
  static std::atomic<uint64_t> threads{0};
  static thread_local const uint64_t mine = kFirst / 2 + threads.fetch_add(1);
  return mine;
}

}  // namespace

CaptureMemory::CaptureMemory(c10::cuda::CUDAStream stream) : device_(stream.device_index()) {
  release_ended();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo(stream.stream(), &status, &capture, &graph));
#else
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo_v2(stream.stream(), &status, &capture, &graph));
#endif
  const bool captured = status == cudaStreamCaptureStatusActive;
  pool_ = {0, captured ? kFirst + capture : unused_pool()};
  // Calls on the stream come from this thread only while the object lives.
  allocator::beginAllocateToPool(device_, pool_, [captured, own = stream.stream()](cudaStream_t s) {
    return captured && s == own;
  });
  keep_ = is_new({device_, pool_});
  if (captured && keep_) {
    cudaUserObject_t owner = nullptr;
    C10_CUDA_CHECK(cudaUserObjectCreate(&owner, new Pool(device_, pool_), end, 1,
                                        cudaUserObjectNoDestructorSync));
    C10_CUDA_CHECK(cudaGraphRetainUserObject(graph, owner, 1, cudaGraphUserObjectMove));
  }
}

CaptureMemory::~CaptureMemory() {
  allocator::endAllocateToPool(device_, pool_);
  // The reference that beginAllocateToPool took.
  if (!keep_) allocator::releasePool(device_, pool_);
}

}  // namespace musa::dnn::internal
