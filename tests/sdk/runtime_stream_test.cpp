// libmusart: streams, events and their order.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime_support.h"

TEST(streams) {
  int least = -1;
  int greatest = 1;
  CHECK_EQ(musaDeviceGetStreamPriorityRange(&least, &greatest), musaSuccess);
  CHECK(greatest < least);
  musaStream_t stream = nullptr;
  CHECK_EQ(musaStreamCreateWithPriority(&stream, musaStreamNonBlocking, greatest), musaSuccess);
  int priority = 99;
  CHECK_EQ(musaStreamGetPriority(stream, &priority), musaSuccess);
  CHECK_EQ(priority, greatest);
  unsigned flags = 99;
  CHECK_EQ(musaStreamGetFlags(stream, &flags), musaSuccess);
  CHECK_EQ(flags, musaStreamNonBlocking);
  CHECK_EQ(musaStreamQuery(stream), musaSuccess);
  CHECK_EQ(musaStreamSynchronize(stream), musaSuccess);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
  CHECK_EQ(musaStreamSynchronize(stream), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaStreamDestroy(stream), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaStreamDestroy(nullptr), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaStreamCreateWithFlags(&stream, 0x40), musaErrorInvalidValue);
  CHECK_EQ(musaStreamSynchronize(nullptr), musaSuccess);
  CHECK_EQ(musaStreamSynchronize(musaStreamLegacy), musaSuccess);
  (void)musaGetLastError();
}

TEST(priority_out_of_range_is_clamped) {
  musaStream_t stream = nullptr;
  CHECK_EQ(musaStreamCreateWithPriority(&stream, 0, -1000), musaSuccess);
  int priority = 0;
  int greatest = 0;
  CHECK_EQ(musaStreamGetPriority(stream, &priority), musaSuccess);
  CHECK_EQ(musaDeviceGetStreamPriorityRange(nullptr, &greatest), musaSuccess);
  CHECK_EQ(priority, greatest);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
}

TEST(work_on_a_stream_never_overlaps) {
  Stream stream;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        musa::host::enqueue(stream.handle, [&] {
          most = std::max(most.load(), ++inside);
          --inside;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(musaStreamSynchronize(stream.handle), musaSuccess);
  CHECK_EQ(most.load(), 1);
}

TEST(enqueue_on_a_dead_stream) {
  musaStream_t stream = nullptr;
  CHECK_EQ(musaStreamCreate(&stream), musaSuccess);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
  bool thrown = false;
  try {
    musa::host::enqueue(stream, [] {});
  } catch (const std::invalid_argument&) {
    thrown = true;
  }
  CHECK(thrown);
}

TEST(host_function_runs_in_order) {
  Stream stream;
  std::vector<int> order;
  musa::host::enqueue(stream.handle, [&] { order.push_back(1); });
  CHECK_EQ(musaLaunchHostFunc(
               stream.handle,
               [](void* data) { static_cast<std::vector<int>*>(data)->push_back(2); }, &order),
           musaSuccess);
  musa::host::enqueue(stream.handle, [&] { order.push_back(3); });
  CHECK_EQ(musaStreamSynchronize(stream.handle), musaSuccess);
  CHECK((order == std::vector<int>{1, 2, 3}));
  CHECK_EQ(musaLaunchHostFunc(stream.handle, nullptr, nullptr), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(events_measure_time) {
  musaEvent_t start = nullptr;
  musaEvent_t end = nullptr;
  CHECK_EQ(musaEventCreate(&start), musaSuccess);
  CHECK_EQ(musaEventCreateWithFlags(&end, musaEventBlockingSync), musaSuccess);
  float milliseconds = -1;
  CHECK_EQ(musaEventQuery(start), musaSuccess);  // never recorded counts as reached
  CHECK_EQ(musaEventElapsedTime(&milliseconds, start, end), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaEventRecord(start, nullptr), musaSuccess);
  musa::host::enqueue(nullptr, [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  CHECK_EQ(musaEventRecord(end, nullptr), musaSuccess);
  CHECK_EQ(musaEventSynchronize(end), musaSuccess);
  CHECK_EQ(musaEventElapsedTime(&milliseconds, start, end), musaSuccess);
  CHECK(milliseconds >= 19 && milliseconds < 5000);
  CHECK_EQ(musaEventDestroy(start), musaSuccess);
  CHECK_EQ(musaEventDestroy(start), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaEventQuery(start), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaEventDestroy(end), musaSuccess);
  (void)musaGetLastError();
}

TEST(events_without_timing) {
  musaEvent_t event = nullptr;
  CHECK_EQ(musaEventCreateWithFlags(&event, musaEventDisableTiming), musaSuccess);
  CHECK_EQ(musaEventRecord(event, nullptr), musaSuccess);
  float milliseconds = -1;
  CHECK_EQ(musaEventElapsedTime(&milliseconds, event, event), musaErrorInvalidResourceHandle);
  Stream stream;
  CHECK_EQ(musaStreamWaitEvent(stream.handle, event, 0), musaSuccess);
  CHECK_EQ(musaStreamWaitEvent(stream.handle, event, 5), musaErrorInvalidValue);
  CHECK_EQ(musaEventDestroy(event), musaSuccess);
  CHECK_EQ(musaEventCreateWithFlags(&event, 0x100), musaErrorInvalidValue);
  CHECK_EQ(musaEventCreateWithFlags(&event, musaEventInterprocess), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(an_event_belongs_to_its_device) {
  musaEvent_t event = nullptr;
  CHECK_EQ(musaEventCreate(&event), musaSuccess);
  CHECK_EQ(musaSetDevice(1), musaSuccess);
  CHECK_EQ(musaEventRecord(event, nullptr), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaSetDevice(0), musaSuccess);
  CHECK_EQ(musaEventDestroy(event), musaSuccess);
  (void)musaGetLastError();
}

TEST(short_work_runs_at_once_or_is_left_to_the_queue) {
  Stream stream;
  int value = 0;
  const auto increment = [](void* data) { ++*static_cast<int*>(data); };
  const bool ran = musa::host::run_now(0, stream, increment, &value);
  CHECK_EQ(ran, !musa::host::asynchronous());
  CHECK_EQ(value, ran ? 1 : 0);
  // A capture wants to have it.
  musaGraph_t graph = nullptr;
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
  CHECK(!musa::host::run_now(0, stream, increment, &value));
  CHECK_OK(musaStreamEndCapture(stream, &graph));
  CHECK_OK(musaGraphDestroy(graph));
  CHECK_EQ(value, ran ? 1 : 0);
}
