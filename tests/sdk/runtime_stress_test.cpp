// libmusart under load: eight threads, four streams, a hundred thousand allocations (or as many as
// STRESS_ALLOCATIONS says: a million is what the project promises). Nothing is lost, nothing
// overlaps, everything is given back.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "runtime_support.h"

namespace {

constexpr int kThreads = 8;
constexpr int kStreams = 4;

int allocations() {
  const char* text = std::getenv("STRESS_ALLOCATIONS");
  const int value = text == nullptr ? 0 : std::atoi(text);
  return value > 0 ? value : 100'000;
}

// A number generator per thread that needs no state but one word.
uint32_t next(uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

struct Held {
  uint32_t* data;
  uint32_t stamp;
};

// Every block is stamped at both ends by work on a stream, and the stamps are read back by work on
// the same stream before the block goes: two owners of one byte would show.
void allocate_and_free(int thread, musaStream_t stream, std::atomic<int>& wrong) {
  uint32_t random = 0x9e3779b9u * static_cast<uint32_t>(thread + 1);
  std::vector<Held> held;
  const auto release = [&](size_t index) {
    const Held block = held[index];
    held[index] = held.back();
    held.pop_back();
    musa::host::enqueue(stream, [block, &wrong] {
      if (block.data[0] != block.stamp || block.data[15] != block.stamp) ++wrong;
    });
    // Both ways of freeing, the one that waits less often.
    const bool waits = next(random) % 64 == 0;
    const musaError_t error = waits ? musaFree(block.data) : musaFreeAsync(block.data, stream);
    if (error != musaSuccess) ++wrong;
  };
  const int count = allocations() / kThreads;
  for (int i = 0; i < count; ++i) {
    void* pointer = nullptr;
    const size_t bytes = 64 + next(random) % 4096;
    const bool pooled = next(random) % 4 != 0;
    const musaError_t error =
        pooled ? musaMallocAsync(&pointer, bytes, stream) : musaMalloc(&pointer, bytes);
    if (error != musaSuccess) {
      ++wrong;
      continue;
    }
    const Held block{static_cast<uint32_t*>(pointer), next(random)};
    musa::host::enqueue(stream, [block] { block.data[0] = block.data[15] = block.stamp; });
    held.push_back(block);
    if (held.size() > 16) release(next(random) % held.size());
  }
  while (!held.empty()) release(held.size() - 1);
}

}  // namespace

TEST(allocations_from_eight_threads_on_four_streams) {
  const size_t before = free_memory();
  std::vector<musaStream_t> streams(kStreams);
  for (musaStream_t& stream : streams) {
    CHECK_OK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back(
        [&, t] { allocate_and_free(t, streams[static_cast<size_t>(t % kStreams)], wrong); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  for (musaStream_t stream : streams) CHECK_OK(musaStreamDestroy(stream));
  CHECK_OK(musaDeviceSynchronize());
  CHECK_EQ(free_memory(), before);
}

TEST(streams_and_events_come_and_go_under_load) {
  std::atomic<int> wrong{0};
  std::atomic<int> ran{0};
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        musaStream_t producer = nullptr;
        musaStream_t consumer = nullptr;
        musaEvent_t event = nullptr;
        bool ok = musaStreamCreateWithFlags(&producer, musaStreamNonBlocking) == musaSuccess &&
                  musaStreamCreate(&consumer) == musaSuccess &&
                  musaEventCreateWithFlags(&event, musaEventDisableTiming) == musaSuccess;
        auto value = std::make_shared<int>(0);
        musa::host::enqueue(producer, [value] { *value = 1; });
        ok = ok && musaEventRecord(event, producer) == musaSuccess &&
             musaStreamWaitEvent(consumer, event, 0) == musaSuccess;
        musa::host::enqueue(consumer, [value, &wrong, &ran] {
          if (*value != 1) ++wrong;
          ++ran;
        });
        // Destroyed with work left, which is done all the same.
        ok = ok && musaEventDestroy(event) == musaSuccess &&
             musaStreamDestroy(producer) == musaSuccess &&
             musaStreamDestroy(consumer) == musaSuccess;
        if (!ok) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_OK(musaDeviceSynchronize());
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(ran.load(), kThreads * kRounds);
}

TEST(out_of_memory_from_many_threads_is_an_answer) {
  size_t free = 0;
  size_t total = 0;
  CHECK_OK(musaMemGetInfo(&free, &total));
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        void* pointer = nullptr;
        const musaError_t error = musaMalloc(&pointer, total / 3);
        if (error == musaErrorMemoryAllocation) {
          ++refused;
        } else if (error != musaSuccess || musaFree(pointer) != musaSuccess) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(free_memory(), free);
}
