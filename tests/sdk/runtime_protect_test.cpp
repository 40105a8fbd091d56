// libmusart: device memory is out of bounds for host code.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "runtime_support.h"

// The same cases by page permissions, which every machine has, and by protection keys.
#define WITH_PAGES "TORCH_MUSA_HOST_PROTECT=mprotect"
#define WITH_KEYS "TORCH_MUSA_HOST_PROTECT=pkey"
#define WITHOUT "TORCH_MUSA_HOST_PROTECT=off"
#define DEBUGGED "TORCH_MUSA_HOST_PROTECT=off TORCH_MUSA_HOST_DEBUG=1"

namespace {

void require_protection() {
  if (!musa::host::device_memory_is_protected()) {
    throw check::Skipped("no memory protection keys in this CPU or kernel");
  }
}

volatile char* device_bytes(size_t bytes) {
  void* pointer = nullptr;
  CHECK_OK(musaMalloc(&pointer, bytes));
  return static_cast<volatile char*>(pointer);
}

void host_reads() {
  require_protection();
  volatile char* memory = device_bytes(1024);
  (void)memory[100];
}

void host_writes() {
  require_protection();
  volatile char* memory = device_bytes(1024);
  memory[100] = 1;
}

void work_may() {
  require_protection();
  volatile char* memory = device_bytes(kBytes);
  musa::host::enqueue(nullptr, [&] { memory[0] = 7; });
  CHECK_OK(musaStreamSynchronize(nullptr));
  char back = 0;
  CHECK_OK(musaMemcpy(&back, const_cast<char*>(memory), 1, musaMemcpyDeviceToHost));
  CHECK_EQ(static_cast<int>(back), 7);
}

void the_pool_may() {
  require_protection();
  volatile char* memory = device_bytes(kMiB);
  for (int round = 0; round < 3; ++round) {
    musa::host::enqueue(nullptr, [memory, round] {
      musa::host::parallel_for(0, kMiB, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) memory[i] = static_cast<char>(round);
      });
    });
  }
  CHECK_OK(musaStreamSynchronize(nullptr));
}

// Pinned and managed memory belongs to both sides.
void host_memory_stays_open() {
  require_protection();
  char* pinned = nullptr;
  char* managed = nullptr;
  CHECK_OK(musaMallocHost(&pinned, kBytes));
  CHECK_OK(musaMallocManaged(&managed, kBytes));
  std::memset(pinned, 1, kBytes);
  std::memset(managed, 2, kBytes);
  int sum = 0;
  musa::host::enqueue(nullptr, [&] { sum = pinned[0] + managed[kBytes - 1]; });
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK_EQ(sum, 3);
  CHECK_OK(musaFreeHost(pinned));
  CHECK_OK(musaFree(managed));
}

void a_host_function_may_not() {
  require_protection();
  volatile char* memory = device_bytes(kBytes);
  CHECK_OK(musaLaunchHostFunc(
      nullptr, [](void* data) { *static_cast<volatile char*>(data) = 1; },
      const_cast<char*>(memory)));
  CHECK_OK(musaStreamSynchronize(nullptr));
}

// A system call does not fault, it fails.
void the_kernel_may_not_either() {
  require_protection();
  volatile char* memory = device_bytes(kBytes);
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK(write(ends[1], const_cast<char*>(memory), 10) < 0);
  musa::host::enqueue(nullptr, [&] { CHECK(write(ends[1], const_cast<char*>(memory), 10) == 10); });
  CHECK_OK(musaStreamSynchronize(nullptr));
}

}  // namespace

TEST_DIES(host_reads_by_pages, WITH_PAGES, "host code read device memory outside of any kernel") {
  host_reads();
}
TEST_DIES(host_writes_by_pages, WITH_PAGES, "byte 100 of the 1024-byte block at 0x") {
  host_writes();
}
TEST_DIES(the_message_names_who_allocated, WITH_PAGES, "allocated by ") { host_writes(); }
TEST_DIES(host_reads_by_keys, WITH_KEYS, "host code read device memory outside of any kernel") {
  host_reads();
}
TEST_DIES(host_writes_by_keys, WITH_KEYS, "byte 100 of the 1024-byte block at 0x") {
  host_writes();
}
TEST_DIES(host_function_by_pages, WITH_PAGES, "host code wrote device memory") {
  a_host_function_may_not();
}
TEST_DIES(host_function_by_keys, WITH_KEYS, "host code wrote device memory") {
  a_host_function_may_not();
}
TEST_WITH_ENV(work_by_pages, WITH_PAGES) { work_may(); }
TEST_WITH_ENV(work_by_keys, WITH_KEYS) { work_may(); }
TEST_WITH_ENV(pool_by_pages, WITH_PAGES) { the_pool_may(); }
TEST_WITH_ENV(pool_by_keys, WITH_KEYS) { the_pool_may(); }
TEST_WITH_ENV(host_memory_by_pages, WITH_PAGES) { host_memory_stays_open(); }
TEST_WITH_ENV(host_memory_by_keys, WITH_KEYS) { host_memory_stays_open(); }
TEST_WITH_ENV(system_calls_by_pages, WITH_PAGES) { the_kernel_may_not_either(); }
TEST_WITH_ENV(system_calls_by_keys, WITH_KEYS) { the_kernel_may_not_either(); }

// OpenMP's threads are older than the work that they help with.
TEST_WITH_ENV(helper_threads_by_keys, WITH_KEYS) {
  require_protection();
  volatile char* memory = device_bytes(kBytes);
  std::atomic<int> turn{0};
  std::thread helper([&] {
    while (turn != 1) std::this_thread::yield();
    memory[5] = 42;
    turn = 2;
  });
  musa::host::enqueue(nullptr, [&] {
    turn = 1;
    while (turn != 2) std::this_thread::yield();
  });
  helper.join();
  char back = 0;
  CHECK_OK(musaMemcpy(&back, const_cast<char*>(memory) + 5, 1, musaMemcpyDeviceToHost));
  CHECK_EQ(static_cast<int>(back), 42);
}

TEST_DIES(helper_threads_without_work_by_keys, WITH_KEYS, "host code wrote device memory") {
  require_protection();
  volatile char* memory = device_bytes(kBytes);
  std::thread([&] { memory[5] = 42; }).join();
}

TEST_WITH_ENV(protection_can_be_switched_off, WITHOUT) {
  CHECK(!musa::host::device_memory_is_protected());
  device_bytes(kBytes)[0] = 1;
}

TEST_WITH_ENV(a_misspelt_mode_is_the_default, "TORCH_MUSA_HOST_PROTECT=on") {
  CHECK_OK(musaMemset(const_cast<char*>(device_bytes(kBytes)), 1, kBytes));
}

TEST_DIES(freed_memory_is_inaccessible_in_debug_mode, DEBUGGED, "and freed since") {
  volatile char* memory = device_bytes(1024);
  CHECK_OK(musaFree(const_cast<char*>(memory)));
  musa::host::enqueue(nullptr, [&] { memory[3] = 1; });
  (void)musaStreamSynchronize(nullptr);
}

TEST_DIES(work_far_behind_the_end_dies_in_debug_mode, DEBUGGED,
          "bytes behind the end of the 1024-byte block") {
  volatile char* memory = device_bytes(1024);
  musa::host::enqueue(0, nullptr, [&] { memory[4096] = 1; }, "far_off");
  (void)musaStreamSynchronize(nullptr);
}

TEST_WITH_ENV(work_just_behind_the_end_is_an_illegal_address_in_debug_mode, DEBUGGED) {
  volatile char* memory = device_bytes(1024);
  musa::host::enqueue(0, nullptr, [&] { memory[1023] = 1; }, "in_bounds");
  CHECK_OK(musaStreamSynchronize(nullptr));
  musa::host::enqueue(0, nullptr, [&] { memory[1024] = 1; }, "one_too_far");
  CHECK_EQ(musaStreamSynchronize(nullptr), musaErrorIllegalAddress);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}

// One thread's work checks the red zones of blocks that others have only just got.
TEST_WITH_ENV(threads_allocate_beside_each_others_work_in_debug_mode, DEBUGGED) {
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&failed] {
      for (int round = 0; round < 3000; ++round) {
        void* pointer = nullptr;
        failed += musaMalloc(&pointer, 32) != musaSuccess;
        failed += musaMemset(pointer, 0, 32) != musaSuccess;
        failed += musaFree(pointer) != musaSuccess;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failed.load(), 0);
  CHECK_OK(musaDeviceSynchronize());
}

// Opening memory is a system call for each block: once for a piece of work and its checks, not once
// for every block that is checked.
TEST_WITH_ENV(work_by_pages_opens_every_block_once, WITH_PAGES) {
  constexpr size_t kBlocks = 100;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<std::unique_ptr<Buffer>> blocks;
  for (size_t i = 0; i < kBlocks; ++i) blocks.push_back(std::make_unique<Buffer>(1024));
  auto* pages = static_cast<char*>(
      mmap(nullptr, 2 * kBlocks * page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(pages != MAP_FAILED);
  const auto open_and_close = [&] {
    for (const int permissions : {PROT_READ | PROT_WRITE, PROT_NONE}) {
      for (size_t i = 0; i < kBlocks; ++i) mprotect(pages + 2 * i * page, page, permissions);
    }
  };
  const auto work = [] {
    musa::host::enqueue(nullptr, [] {});
    CHECK_OK(musaDeviceSynchronize());
  };
  const auto seconds = [](const auto& what) {
    const auto begin = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double once = 1e9;
  double of_work = 1e9;
  for (int round = 0; round < 20; ++round) {
    once = std::min(once, seconds(open_and_close));
    of_work = std::min(of_work, seconds(work));
  }
  CHECK(of_work < 20 * once);  // some 100 times it, if each block opens all of them
}

TEST_DIES(the_message_names_the_kernel, DEBUGGED, "one_too_far wrote behind an allocation") {
  volatile char* memory = device_bytes(1024);
  musa::host::enqueue(0, nullptr, [&] { memory[1030] = 1; }, "one_too_far");
  (void)musaStreamSynchronize(nullptr);
  abort();
}

TEST_WITH_ENV(debug_mode_finds_addresses_again_when_none_are_left,
              "TORCH_MUSA_HOST_DEBUG=1 TORCH_MUSA_HOST_MEMORY=64") {
  for (int i = 0; i < 100; ++i) {
    volatile char* memory = device_bytes(32 * kMiB);
    CHECK_OK(musaFree(const_cast<char*>(memory)));
  }
}
