// libmusart: device, pinned and managed memory, pools, pointer attributes.
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime_support.h"

TEST(malloc_is_aligned_and_accounted) {
  const size_t before = free_memory();
  {
    Buffer a(1);
    Buffer b(300);
    CHECK_EQ(reinterpret_cast<uintptr_t>(a.data) % 256, 0u);
    CHECK_EQ(reinterpret_cast<uintptr_t>(b.data) % 256, 0u);
    CHECK_EQ(before - free_memory(), size_t{256 + 512});
    CHECK_EQ(musaSetDevice(1), musaSuccess);
    const size_t other = free_memory();
    CHECK_EQ(musaSetDevice(0), musaSuccess);
    CHECK_EQ(other, before);
  }
  CHECK_EQ(free_memory(), before);
}

TEST(fresh_memory_is_not_zero) {
  Buffer buffer(kBytes);
  float value = 0;
  CHECK_EQ(musaMemcpy(&value, buffer.data, sizeof(value), musaMemcpyDeviceToHost), musaSuccess);
  CHECK(std::isnan(value));
}

TEST(malloc_of_nothing) {
  void* pointer = &pointer;
  CHECK_EQ(musaMalloc(&pointer, 0), musaSuccess);
  CHECK(pointer == nullptr);
  CHECK_EQ(musaFree(nullptr), musaSuccess);
}

TEST_WITH_ENV(out_of_memory, "TORCH_MUSA_HOST_MEMORY=64") {
  constexpr size_t kMiB = 1 << 20;
  size_t free = 0;
  size_t total = 0;
  CHECK_EQ(musaMemGetInfo(&free, &total), musaSuccess);
  CHECK_EQ(total, 64 * kMiB);
  Buffer most(60 * kMiB);
  void* pointer = &pointer;
  CHECK_EQ(musaMalloc(&pointer, 5 * kMiB), musaErrorMemoryAllocation);
  CHECK(pointer == nullptr);
  CHECK_EQ(musaGetLastError(), musaErrorMemoryAllocation);
  CHECK_EQ(musaMalloc(&pointer, SIZE_MAX), musaErrorMemoryAllocation);
  CHECK_EQ(musaMalloc(&pointer, SIZE_MAX - 1000), musaErrorMemoryAllocation);
  CHECK_EQ(musaMalloc(&pointer, 4 * kMiB), musaSuccess);  // still usable, to the last byte
  CHECK_EQ(musaFree(pointer), musaSuccess);
  Buffer elsewhere(60 * kMiB, 1);
}

TEST(free_of_what_is_not_ours) {
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, kBytes), musaSuccess);
  CHECK_EQ(musaFree(static_cast<char*>(pointer) + 8), musaErrorInvalidValue);
  CHECK_EQ(musaFree(pointer), musaSuccess);
  CHECK_EQ(musaFree(pointer), musaErrorInvalidValue);
  int local = 0;
  CHECK_EQ(musaFree(&local), musaErrorInvalidValue);
  CHECK_EQ(musaFreeHost(&local), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(pinned_memory) {
  void* pinned = nullptr;
  CHECK_EQ(musaMallocHost(&pinned, kBytes), musaSuccess);
  std::memset(pinned, 1, kBytes);
  musaPointerAttributes attributes;
  CHECK_EQ(musaPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 10), musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeHost);
  CHECK(attributes.hostPointer == attributes.devicePointer);
  CHECK_EQ(musaFree(pinned), musaErrorInvalidValue);
  void* device_side = nullptr;
  CHECK_EQ(musaHostGetDevicePointer(&device_side, pinned, 0), musaSuccess);
  CHECK(device_side == pinned);
  CHECK_EQ(musaFreeHost(pinned), musaSuccess);
  CHECK_EQ(musaFreeHost(pinned), musaErrorInvalidValue);
  CHECK_EQ(musaHostAlloc(&pinned, kBytes, 0x80), musaErrorInvalidValue);
  CHECK_EQ(musaHostAlloc(&pinned, kBytes, musaHostAllocPortable), musaSuccess);
  CHECK_EQ(musaFreeHost(pinned), musaSuccess);
  (void)musaGetLastError();
}

TEST(host_registration) {
  std::vector<char> memory(4096);
  CHECK_EQ(musaHostUnregister(memory.data()), musaErrorHostMemoryNotRegistered);
  CHECK_EQ(musaHostRegister(memory.data(), memory.size(), musaHostRegisterDefault), musaSuccess);
  CHECK_EQ(musaHostRegister(memory.data() + 100, 10, 0), musaErrorHostMemoryAlreadyRegistered);
  CHECK(musa::host::device_accessible(memory.data(), memory.size(), 0));
  CHECK_EQ(musaFreeHost(memory.data()), musaErrorInvalidValue);
  CHECK_EQ(musaHostUnregister(memory.data() + 1), musaErrorHostMemoryNotRegistered);
  CHECK_EQ(musaHostUnregister(memory.data()), musaSuccess);
  CHECK(!musa::host::device_accessible(memory.data(), memory.size(), 0));
  CHECK_EQ(musaHostRegister(nullptr, 10, 0), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(pointer_attributes) {
  Buffer buffer(kBytes, 1);
  musaPointerAttributes attributes;
  CHECK_EQ(musaPointerGetAttributes(&attributes, static_cast<char*>(buffer.data) + 5), musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeDevice);
  CHECK_EQ(attributes.device, 1);
  CHECK(attributes.hostPointer == nullptr);
  int local = 0;
  CHECK_EQ(musaPointerGetAttributes(&attributes, &local), musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeUnregistered);
  CHECK_EQ(attributes.device, musaInvalidDeviceId);
  CHECK(attributes.devicePointer == nullptr && attributes.hostPointer == &local);
}

TEST(a_block_ends_where_it_was_asked_to) {
  Buffer buffer(512);
  CHECK(musa::host::device_accessible(buffer.data, 512, 0));
  CHECK(!musa::host::device_accessible(buffer.data, 513, 0));
  CHECK(musa::host::device_accessible(static_cast<char*>(buffer.data) + 511, 1, 0));
}

TEST(threads_allocate_and_free) {
  const size_t before = free_memory();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<void*> held;
      for (int i = 0; i < 500; ++i) {
        void* pointer = nullptr;
        if (musaMalloc(&pointer, static_cast<size_t>(i % 37 + 1) * 64) != musaSuccess) ++failures;
        held.push_back(pointer);
        if (i % 3 == t % 3) {
          if (musaFree(held.back()) != musaSuccess) ++failures;
          held.pop_back();
        }
      }
      for (void* pointer : held) {
        if (musaFree(pointer) != musaSuccess) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failures.load(), 0);
  CHECK_EQ(free_memory(), before);
}
