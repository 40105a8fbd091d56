// libmusart: memory in the order of streams (musaMallocAsync).
#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime_support.h"

namespace {

musaMemPool_t default_pool(int device = 0) {
  musaMemPool_t pool = nullptr;
  CHECK_OK(musaDeviceGetDefaultMemPool(&pool, device));
  CHECK(pool != nullptr);
  return pool;
}

uint64_t attribute(musaMemPoolAttr which) {
  uint64_t value = 0;
  CHECK_OK(musaMemPoolGetAttribute(default_pool(), which, &value));
  return value;
}

void keep_memory(uint64_t bytes) {
  CHECK_OK(musaMemPoolSetAttribute(default_pool(), musaMemPoolAttrReleaseThreshold, &bytes));
}

// Every case begins and ends with nothing reserved.
struct CleanPool {
  CleanPool() { clean(); }
  ~CleanPool() { clean(); }
  static void clean() {
    (void)musaDeviceSynchronize();
    keep_memory(0);
    (void)musaMemPoolTrimTo(default_pool(), 0);
  }
};

}  // namespace

TEST(a_pool_reuses_what_its_stream_has_freed) {
  const CleanPool clean;
  keep_memory(UINT64_MAX);
  Stream stream;
  void* first = nullptr;
  void* second = nullptr;
  CHECK_OK(musaMallocAsync(&first, kBytes, stream));
  CHECK_OK(musaMemsetAsync(first, 1, kBytes, stream));
  CHECK_OK(musaFreeAsync(first, stream));
  CHECK_OK(musaMallocAsync(&second, kBytes, stream));
  CHECK(first == second);
  CHECK_OK(musaFreeAsync(second, stream));
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK_EQ(attribute(musaMemPoolAttrReservedMemCurrent), uint64_t{1024});
  CHECK_EQ(attribute(musaMemPoolAttrUsedMemCurrent), uint64_t{0});
  CHECK(attribute(musaMemPoolAttrUsedMemHigh) >= 1024);
}

TEST(synchronization_releases_what_lies_above_the_threshold) {
  const CleanPool clean;
  const size_t before = free_memory();
  void* pointer = nullptr;
  CHECK_OK(musaMallocAsync(&pointer, kMiB, nullptr));
  CHECK_EQ(before - free_memory(), kMiB);
  CHECK_OK(musaFreeAsync(pointer, nullptr));
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK_EQ(free_memory(), before);
}

TEST(trim_keeps_as_much_as_it_is_told) {
  const CleanPool clean;
  keep_memory(UINT64_MAX);
  std::vector<void*> pointers(4);
  for (void*& pointer : pointers) CHECK_OK(musaMallocAsync(&pointer, kMiB, nullptr));
  for (void* pointer : pointers) CHECK_OK(musaFreeAsync(pointer, nullptr));
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK_EQ(attribute(musaMemPoolAttrReservedMemCurrent), 4 * kMiB);
  CHECK_OK(musaMemPoolTrimTo(default_pool(), 2 * kMiB));
  CHECK_EQ(attribute(musaMemPoolAttrReservedMemCurrent), 2 * kMiB);
}

TEST_WITH_ENV(a_full_device_takes_back_what_its_pool_holds, "TORCH_MUSA_HOST_MEMORY=64") {
  keep_memory(UINT64_MAX);
  void* pooled = nullptr;
  CHECK_OK(musaMallocAsync(&pooled, 60 * kMiB, nullptr));
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, 60 * kMiB), musaErrorMemoryAllocation);
  CHECK_EQ(musaMallocAsync(&pointer, 60 * kMiB, nullptr), musaErrorMemoryAllocation);
  CHECK_OK(musaFreeAsync(pooled, nullptr));
  CHECK_OK(musaMalloc(&pointer, 60 * kMiB));
  CHECK_OK(musaFree(pointer));
}

TEST(memory_may_be_freed_by_the_other_family) {
  const CleanPool clean;
  const size_t before = free_memory();
  void* pointer = nullptr;
  CHECK_OK(musaMallocAsync(&pointer, kBytes, nullptr));
  CHECK_OK(musaFree(pointer));
  CHECK_EQ(musaFree(pointer), musaErrorInvalidValue);
  CHECK_OK(musaMalloc(&pointer, kBytes));
  CHECK_OK(musaFreeAsync(pointer, nullptr));
  CHECK_EQ(musaFreeAsync(pointer, nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaFree(pointer), musaErrorInvalidValue);
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK_EQ(free_memory(), before);
  (void)musaGetLastError();
}

TEST(attributes_that_cannot_be_set) {
  uint64_t value = 7;
  for (auto which : {musaMemPoolAttrReservedMemCurrent, musaMemPoolAttrUsedMemCurrent,
                     musaMemPoolAttrUsedMemHigh, static_cast<musaMemPoolAttr>(77)}) {
    CHECK_EQ(musaMemPoolSetAttribute(default_pool(), which, &value), musaErrorInvalidValue);
  }
  int flag = -1;
  CHECK_OK(musaMemPoolGetAttribute(default_pool(), musaMemPoolReuseAllowOpportunistic, &flag));
  CHECK_EQ(flag, 1);
  (void)musaGetLastError();
}
