// libmusart with MUSA_LAUNCH_BLOCKING=0: calls return before their work is done, and only the order
// that streams and events promise holds.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime_support.h"

#define ASYNC_TEST(name) TEST_WITH_ENV(name, "MUSA_LAUNCH_BLOCKING=0")

namespace {

using std::chrono::milliseconds;

// Work that holds its stream until told otherwise.
class Gate {
 public:
  explicit Gate(musaStream_t stream, int device = 0) {
    musa::host::enqueue(device, stream, [open = opened_.get_future().share()] { open.wait(); });
  }
  ~Gate() { open(); }
  void open() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }

 private:
  std::promise<void> opened_;
  bool is_open_ = false;
};

// Time enough for work to run that nothing holds.
void let_run() { std::this_thread::sleep_for(milliseconds(30)); }

}  // namespace

ASYNC_TEST(calls_return_before_the_work_is_done) {
  CHECK(musa::host::asynchronous());
  Stream stream;
  std::atomic<bool> done{false};
  {
    Gate gate(stream);
    musa::host::enqueue(stream, [&] { done = true; });
    CHECK_EQ(musaStreamQuery(stream), musaErrorNotReady);
    let_run();
    CHECK(!done);
  }
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK(done);
  CHECK_OK(musaStreamQuery(stream));
  (void)musaGetLastError();
}

ASYNC_TEST(a_stream_keeps_its_order) {
  Stream stream;
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) {
    musa::host::enqueue(stream, [&order, i] { order.push_back(i); });
  }
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK_EQ(order.size(), size_t{1000});
  for (int i = 0; i < 1000; ++i) CHECK_EQ(order[static_cast<size_t>(i)], i);
}

ASYNC_TEST(streams_do_not_wait_for_each_other) {
  Stream held;
  Stream free;
  Gate gate(held);
  musa::host::enqueue(free, [] {});
  CHECK_OK(musaStreamSynchronize(free));
  CHECK_EQ(musaStreamQuery(held), musaErrorNotReady);
  (void)musaGetLastError();
}

ASYNC_TEST(a_stream_waits_for_an_event) {
  Stream first;
  Stream second;
  Event event(musaEventDisableTiming);
  std::atomic<bool> produced{false};
  std::atomic<bool> seen{false};
  Gate gate(first);
  musa::host::enqueue(first, [&] { produced = true; });
  CHECK_OK(musaEventRecord(event, first));
  CHECK_OK(musaStreamWaitEvent(second, event, 0));
  musa::host::enqueue(second, [&] { seen = produced.load(); });
  CHECK_EQ(musaEventQuery(event), musaErrorNotReady);
  CHECK_EQ(musaStreamQuery(second), musaErrorNotReady);
  // A later record is not what was waited for.
  Gate never(first);
  CHECK_OK(musaEventRecord(event, first));
  gate.open();
  CHECK_OK(musaStreamSynchronize(second));
  CHECK(seen);
  CHECK_EQ(musaEventQuery(event), musaErrorNotReady);
  never.open();
  CHECK_OK(musaEventSynchronize(event));
  CHECK_OK(musaEventQuery(event));
  (void)musaGetLastError();
}

ASYNC_TEST(an_event_lives_until_who_waits_has_seen_it) {
  Stream first;
  Stream second;
  Gate gate(first);
  musaEvent_t event = nullptr;
  CHECK_OK(musaEventCreate(&event));
  CHECK_OK(musaEventRecord(event, first));
  CHECK_OK(musaStreamWaitEvent(second, event, 0));
  CHECK_OK(musaEventDestroy(event));
  CHECK_EQ(musaStreamQuery(second), musaErrorNotReady);
  gate.open();
  CHECK_OK(musaStreamSynchronize(second));
  (void)musaGetLastError();
}

ASYNC_TEST(events_measure_what_the_stream_did) {
  Stream stream;
  Event start;
  Event end;
  CHECK_OK(musaEventRecord(start, stream));
  musa::host::enqueue(stream, [] { std::this_thread::sleep_for(milliseconds(20)); });
  CHECK_OK(musaEventRecord(end, stream));
  float elapsed = -1;
  CHECK_EQ(musaEventElapsedTime(&elapsed, start, end), musaErrorNotReady);
  CHECK_OK(musaEventSynchronize(end));
  CHECK_OK(musaEventElapsedTime(&elapsed, start, end));
  CHECK(elapsed >= 19 && elapsed < 5000);
  (void)musaGetLastError();
}

ASYNC_TEST(the_default_stream_waits_for_blocking_streams) {
  Stream blocking;
  Gate gate(blocking);
  std::atomic<bool> ran{false};
  musa::host::enqueue(nullptr, [&] { ran = true; });
  let_run();
  CHECK(!ran);
  CHECK_EQ(musaStreamQuery(nullptr), musaErrorNotReady);
  gate.open();
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK(ran);
  (void)musaGetLastError();
}

ASYNC_TEST(blocking_streams_wait_for_the_default_stream) {
  Stream blocking;
  Stream independent(musaStreamNonBlocking);
  Gate gate(nullptr);
  musa::host::enqueue(blocking, [] {});
  musa::host::enqueue(independent, [] {});
  CHECK_OK(musaStreamSynchronize(independent));
  CHECK_EQ(musaStreamQuery(blocking), musaErrorNotReady);
  gate.open();
  CHECK_OK(musaStreamSynchronize(blocking));
  (void)musaGetLastError();
}

ASYNC_TEST(the_default_stream_does_not_wait_for_a_non_blocking_stream) {
  Stream independent(musaStreamNonBlocking);
  Gate gate(independent);
  musa::host::enqueue(nullptr, [] {});
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK_EQ(musaDeviceSynchronize(), (gate.open(), musaSuccess));
}

ASYNC_TEST(each_thread_has_a_stream_of_its_own) {
  Gate gate(musaStreamPerThread);
  CHECK_EQ(musaStreamQuery(musaStreamPerThread), musaErrorNotReady);
  musaError_t elsewhere = musaErrorUnknown;
  std::thread([&] { elsewhere = musaStreamQuery(musaStreamPerThread); }).join();
  CHECK_EQ(elsewhere, musaSuccess);
  gate.open();
  CHECK_OK(musaStreamSynchronize(musaStreamPerThread));
  (void)musaGetLastError();
}

ASYNC_TEST(device_synchronize_waits_for_every_stream) {
  std::atomic<int> done{0};
  std::vector<musaStream_t> streams(5);
  for (size_t i = 0; i < streams.size(); ++i) {
    CHECK_OK(musaStreamCreateWithFlags(&streams[i], i % 2 ? musaStreamNonBlocking : 0));
    musa::host::enqueue(streams[i], [&] {
      std::this_thread::sleep_for(milliseconds(10));
      ++done;
    });
    // A stream that is gone still has its work done.
    if (i == 3) CHECK_OK(musaStreamDestroy(streams[i]));
  }
  CHECK_OK(musaDeviceSynchronize());
  CHECK_EQ(done.load(), 5);
}

ASYNC_TEST(devices_do_not_wait_for_each_other) {
  Gate gate(nullptr, 0);
  CHECK_OK(musaSetDevice(1));
  musa::host::enqueue(nullptr, [] {});
  CHECK_OK(musaDeviceSynchronize());
  CHECK_OK(musaSetDevice(0));
}

ASYNC_TEST(a_copy_from_pinned_memory_reads_it_when_its_turn_comes) {
  Stream stream;
  Buffer device(kBytes);
  void* pinned = nullptr;
  CHECK_OK(musaMallocHost(&pinned, kBytes));
  std::memset(pinned, 1, kBytes);
  Gate gate(stream);
  CHECK_OK(musaMemcpyAsync(device.data, pinned, kBytes, musaMemcpyHostToDevice, stream));
  std::memset(pinned, 2, kBytes);  // the mistake that this mode is there to show
  gate.open();
  std::vector<char> back(kBytes);
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK_OK(musaMemcpy(back.data(), device.data, kBytes, musaMemcpyDeviceToHost));
  CHECK_EQ(static_cast<int>(back[0]), 2);
  CHECK_OK(musaFreeHost(pinned));
}

ASYNC_TEST(a_copy_from_pageable_memory_has_read_it_on_return) {
  Stream stream;
  Buffer device(kBytes);
  std::vector<char> source(kBytes, 1);
  Gate gate(stream);
  CHECK_OK(musaMemcpyAsync(device.data, source.data(), kBytes, musaMemcpyHostToDevice, stream));
  std::fill(source.begin(), source.end(), 2);
  gate.open();
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK_OK(musaMemcpy(source.data(), device.data, kBytes, musaMemcpyDeviceToHost));
  CHECK_EQ(static_cast<int>(source[0]), 1);
}

ASYNC_TEST(a_copy_to_pageable_memory_is_done_on_return) {
  Stream stream;
  Buffer device(kBytes);
  std::vector<char> back(kBytes);
  musa::host::enqueue(stream, [p = device.data] {
    std::this_thread::sleep_for(milliseconds(20));
    std::memset(p, 5, kBytes);
  });
  CHECK_OK(musaMemcpyAsync(back.data(), device.data, kBytes, musaMemcpyDeviceToHost, stream));
  CHECK_EQ(static_cast<int>(back[kBytes - 1]), 5);
}

ASYNC_TEST(a_copy_to_pinned_memory_is_not_done_on_return) {
  Stream stream;
  Buffer device(kBytes);
  CHECK_OK(musaMemset(device.data, 5, kBytes));
  char* pinned = nullptr;
  CHECK_OK(musaMallocHost(&pinned, kBytes));
  std::memset(pinned, 0, kBytes);
  Gate gate(stream);
  CHECK_OK(musaMemcpyAsync(pinned, device.data, kBytes, musaMemcpyDeviceToHost, stream));
  let_run();
  CHECK_EQ(static_cast<int>(pinned[0]), 0);
  gate.open();
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK_EQ(static_cast<int>(pinned[0]), 5);
  CHECK_OK(musaFreeHost(pinned));
}

ASYNC_TEST(free_waits_for_the_device) {
  Stream stream(musaStreamNonBlocking);
  void* pointer = nullptr;
  CHECK_OK(musaMalloc(&pointer, kBytes));
  std::atomic<bool> done{false};
  musa::host::enqueue(stream, [&] {
    std::this_thread::sleep_for(milliseconds(20));
    std::memset(pointer, 1, kBytes);
    done = true;
  });
  CHECK_OK(musaFree(pointer));
  CHECK(done);
}

ASYNC_TEST(a_host_function_runs_in_order_and_may_not_call_the_runtime) {
  Stream stream;
  struct State {
    std::atomic<bool> before{false};
    bool in_order = false;
    musaError_t error = musaSuccess;
  } state;
  Gate gate(stream);
  musa::host::enqueue(stream, [&] { state.before = true; });
  CHECK_OK(musaLaunchHostFunc(
      stream,
      [](void* data) {
        auto* s = static_cast<State*>(data);
        s->in_order = s->before;
        void* pointer = nullptr;
        s->error = musaMalloc(&pointer, 8);
      },
      &state));
  gate.open();
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK(state.in_order);
  CHECK_EQ(state.error, musaErrorNotPermitted);
}

ASYNC_TEST(work_that_throws_leaves_a_sticky_error) {
  Stream stream;
  std::atomic<bool> after{false};
  musa::host::enqueue(0, stream, [] { throw std::runtime_error("index out of range"); }, "gather");
  try {
    musa::host::enqueue(stream, [&] { after = true; });
  } catch (const std::runtime_error&) {
    // The first has failed already: nothing is taken any more.
  }
  CHECK_EQ(musaStreamSynchronize(stream), musaErrorLaunchFailure);
  CHECK(!after);
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, 8), musaErrorLaunchFailure);
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
}

ASYNC_TEST(work_may_enqueue_on_its_own_stream) {
  Stream stream;
  std::atomic<int> count{0};
  musa::host::enqueue(stream, [&] { musa::host::enqueue(stream.handle, [&] { ++count; }); });
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK_EQ(count.load(), 1);
}

ASYNC_TEST(the_process_may_end_while_work_runs) {
  static musaStream_t stream = nullptr;
  CHECK_OK(musaStreamCreate(&stream));
  for (int i = 0; i < 100; ++i) {
    musa::host::enqueue(stream, [] { std::this_thread::sleep_for(milliseconds(100)); });
  }
  std::exit(0);  // now, not in ten seconds
}
