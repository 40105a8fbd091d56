// What a launch may ask of a kernel, and kernels that would never end.
#include <musa_runtime.h>

#include <string>

#include "blocking.h"
#include "kernel_testing.h"

// A case that waits for the watchdog.
#define WATCHED_TEST(name) CHECK_DEFINE(name, "MUSA_ARCH=mp_31 TORCH_MUSA_HOST_KERNEL_SECONDS=1")

namespace {

constexpr int kBound = 128;

__global__ void __launch_bounds__(kBound) bounded(int* out) { atomicAdd(out, 1); }

template <int kThreads>
__global__ __launch_bounds__(2 * kThreads, 4) void bounded_by_its_argument(int* out) {
  atomicAdd(out, 1);
}

// One thread's flag sets another thread free; `first` waits although the other has not begun.
__global__ void spin_on_an_atomic(int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    *out = 7;
  } else if (threadIdx.x == blockDim.x - 1) {
    atomicExch(flag, 1);
  }
}

// Every thread in its turn, the last one first.
__global__ void take_tickets(unsigned int* turn, int* order) {
  const unsigned int mine = blockDim.x - 1 - threadIdx.x;
  while (atomicCAS(turn, mine, mine) != mine) {
  }
  order[mine] = static_cast<int>(threadIdx.x);
  __threadfence();
  atomicAdd(turn, 1u);
}

__global__ void spin_with_a_fence(volatile int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {
      __threadfence();
    }
    *out = 3;
  } else {
    *flag = 1;
  }
}

__global__ void lock_a_mutex(int* mutex, int* sum) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  *sum += static_cast<int>(threadIdx.x);
  __nanosleep(10);  // whoever holds it lets others try
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void spin_in_vain(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void spin_in_vain_with_atomics(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}

__global__ void meet_for_ever(volatile int* flag) {
  while (*flag == 0) {
    __syncthreads();
  }
}

__global__ void count(int* out) { atomicAdd(out, 1); }

__global__ void read_a_shared_array(int index, float* out) {
  __shared__ float row[16];
  row[threadIdx.x % 16] = 1;
  __syncthreads();
  if (threadIdx.x == 3) *out = row[index];
}

__global__ void write_a_shared_tile(int y) {
  __shared__ int tile[4][8];
  __shared__ int next[256];
  next[threadIdx.x] = 0;
  tile[y][0] = 1;  // far enough to land in `next`
}

__global__ void read_an_array_of_its_own(int index, int* out) {
  int own[4] = {0, 1, 2, 3};
  own[threadIdx.x % 4] += 1;
  *out = own[index];
}

__global__ void take_the_end_of_an_array(float* out) {
  __shared__ float row[16];
  row[threadIdx.x] = 1;
  __syncthreads();
  float sum = 0;
  for (const float* at = row; at != &row[16]; ++at) sum += *at;
  *out = sum;
}

}  // namespace

TEST_WITH_ENV(launch_bounds_are_enforced_and_the_next_launch_works, BLOCKING) {
  OnDevice<int> runs(1);
  for (int i = 0; i < 2; ++i) {  // the first time they are found out, the second time known
    const std::string text = stderr_of([&] { bounded<<<2, kBound + 32>>>(runs.get()); });
    CHECK_EQ(musaGetLastError(), musaErrorLaunchOutOfResources);
    CHECK_EQ(musaGetLastError(), musaSuccess);
    if (i == 0) CHECK_CONTAINS(text, "160 threads a block: its __launch_bounds__ allow 128");
  }
  CHECK_EQ(runs.value(), 0);
  bounded<<<2, kBound>>>(runs.get());
  CHECK_EQ(musaGetLastError(), musaSuccess);
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK_EQ(runs.value(), 2 * kBound);
}

TEST_WITH_ENV(launch_bounds_may_depend_on_template_arguments, BLOCKING) {
  OnDevice<int> runs(1);
  (void)stderr_of([&] { bounded_by_its_argument<32><<<1, 65>>>(runs.get()); });
  CHECK_EQ(musaGetLastError(), musaErrorLaunchOutOfResources);
  bounded_by_its_argument<64><<<1, 65>>>(runs.get());
  CHECK_EQ(musaGetLastError(), musaSuccess);
  CHECK_EQ(runs.value(), 65);
}

TEST_WITH_ENV(launch_bounds_that_are_broken_after_the_launch_returned_stick,
              "MUSA_ARCH=mp_31 MUSA_LAUNCH_BLOCKING=0") {
  OnDevice<int> runs(1);
  const std::string text = stderr_of([&] { bounded<<<2, kBound + 32>>>(runs.get()); });
  CHECK_CONTAINS(text, "kernel 'bounded'");
  CHECK_EQ(musaDeviceSynchronize(), musaErrorLaunchOutOfResources);
}

TEST(the_end_of_an_array_is_an_address) {
  OnDevice<float> out(1);
  take_the_end_of_an_array<<<1, 16>>>(out.get());
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK_EQ(out.value(), 16.0f);
}

#if !defined(CHECK_UNDEFINED_BEHAVIOR)  // whose sanitizer ends the process at the same places
FAULT_TEST(reading_past_a_shared_array_is_reported_by_line_and_thread) {
  OnDevice<float> out(1);
  read_a_shared_array<<<1, 32>>>(15, out.get());
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK_EQ(out.value(), 1.0f);
  const std::string text = stderr_of([&] { read_a_shared_array<<<1, 32>>>(16, out.get()); });
  CHECK_CONTAINS(text, "kernel 'read_a_shared_array' launched at ");
  CHECK_CONTAINS(text, "thread (3,0,0): ");
  CHECK_CONTAINS(text, "kernel_limits_test.mu:");
  CHECK_CONTAINS(text, "index 16 is out of the bounds of an array, 'float [16]'");
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}

FAULT_TEST(a_negative_index_of_a_shared_array_is_reported) {
  OnDevice<float> out(1);
  const std::string text = stderr_of([&] { read_a_shared_array<<<1, 32>>>(-1, out.get()); });
  CHECK_CONTAINS(text, "index -1 is out of the bounds");
}

FAULT_TEST(writing_from_one_shared_array_into_the_next_is_reported) {
  const std::string text = stderr_of([&] { write_a_shared_tile<<<1, 32>>>(12); });
  CHECK_CONTAINS(text, "index 12 is out of the bounds of an array, 'int [4][8]'");
  CHECK_EQ(musaDeviceSynchronize(), musaErrorIllegalAddress);
}

FAULT_TEST(reading_past_a_threads_own_array_is_reported) {
  OnDevice<int> out(1);
  const std::string text = stderr_of([&] { read_an_array_of_its_own<<<1, 32>>>(9, out.get()); });
  CHECK_CONTAINS(text, "index 9 is out of the bounds of an array, 'int [4]'");
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}
#endif

PROFILE_TEST(a_thread_may_wait_for_another_one_with_atomic_functions) {
  for (const int threads : {2, 100, 1024}) {
    OnDevice<int> flag(1);
    OnDevice<int> out(1);
    spin_on_an_atomic<<<3, threads>>>(flag.get(), out.get());
    CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
    CHECK_EQ(out.value(), 7);
  }
}

TEST(threads_may_take_turns_in_any_order) {
  constexpr int kThreads = 64;
  OnDevice<unsigned int> turn(1);
  OnDevice<int> order(kThreads);
  take_tickets<<<1, kThreads>>>(turn.get(), order.get());
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  const auto values = order.values();
  for (int i = 0; i < kThreads; ++i) CHECK_EQ(values[i], kThreads - 1 - i);
}

TEST(a_thread_that_reads_a_flag_behind_fences_lets_others_run) {
  OnDevice<int> flag(1);
  OnDevice<int> out(1);
  spin_with_a_fence<<<1, 2>>>(flag.get(), out.get());
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK_EQ(out.value(), 3);
}

PROFILE_TEST(a_mutex_that_a_waiting_thread_holds_is_given_back) {
  OnDevice<int> mutex(1);
  OnDevice<int> sum(1);
  lock_a_mutex<<<4, 96>>>(mutex.get(), sum.get());
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK_EQ(sum.value(), 4 * 96 * 95 / 2);
}

#if !defined(__SANITIZE_THREAD__)  // which keeps signals back while a loop calls nothing
WATCHED_TEST(a_thread_that_spins_on_plain_memory_is_ended_with_a_report) {
  OnDevice<int> flag(1);
  const std::string text = stderr_of([&] { spin_in_vain<<<1, 3>>>(flag.get()); });
  CHECK_CONTAINS(text, "kernel 'spin_in_vain' launched at ");
  CHECK_CONTAINS(text, "block (0,0,0), thread (0,0,0): the block has run for 1 s");
  CHECK_CONTAINS(text, "TORCH_MUSA_HOST_KERNEL_SECONDS");
  CHECK_EQ(musaDeviceSynchronize(), musaErrorLaunchTimeout);
}
#endif

WATCHED_TEST(a_thread_that_spins_on_an_atomic_in_vain_is_ended_with_a_report) {
  OnDevice<int> flag(1);
  const std::string text = stderr_of([&] { spin_in_vain_with_atomics<<<1, 3>>>(flag.get()); });
  CHECK_CONTAINS(text, "kernel 'spin_in_vain_with_atomics' launched at ");
  CHECK_CONTAINS(text, "the block has run for 1 s");
  CHECK_EQ(musaDeviceSynchronize(), musaErrorLaunchTimeout);
}

WATCHED_TEST(a_block_that_meets_at_a_barrier_for_ever_is_ended_with_a_report) {
  OnDevice<int> flag(1);
  const std::string text = stderr_of([&] { meet_for_ever<<<1, 3>>>(flag.get()); });
  CHECK_CONTAINS(text, "kernel 'meet_for_ever' launched at ");
  CHECK_EQ(musaDeviceSynchronize(), musaErrorLaunchTimeout);
}

WATCHED_TEST(many_short_blocks_may_take_longer_than_the_limit) {
  OnDevice<int> out(1);
  for (int i = 0; i < 40; ++i) {
    count<<<5000, 64>>>(out.get());
    CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  }
  CHECK_EQ(out.value(), 40 * 5000 * 64);
}
