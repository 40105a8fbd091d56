// libmusart: stream capture and graphs. What may not be done during a capture is refused, breaks
// the capture, and leaves the stream usable.
#include <atomic>
#include <thread>
#include <vector>

#include "runtime_support.h"

namespace {

struct Graph {
  ~Graph() {
    if (exec != nullptr) (void)musaGraphExecDestroy(exec);
    if (graph != nullptr) (void)musaGraphDestroy(graph);
  }
  void end(musaStream_t stream) {
    CHECK_OK(musaStreamEndCapture(stream, &graph));
    CHECK(graph != nullptr);
    CHECK_OK(musaGraphInstantiate(&exec, graph, 0));
  }
  musaGraph_t graph = nullptr;
  musaGraphExec_t exec = nullptr;
};

musaStreamCaptureStatus status(musaStream_t stream) {
  auto value = musaStreamCaptureStatusNone;
  CHECK_OK(musaStreamIsCapturing(stream, &value));
  return value;
}

// Ends a broken capture and shows that the stream works as before.
void expect_broken(musaStream_t stream) {
  CHECK_EQ(status(stream), musaStreamCaptureStatusInvalidated);
  auto* graph = reinterpret_cast<musaGraph_t>(&stream);
  CHECK_EQ(musaStreamEndCapture(stream, &graph), musaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK_EQ(status(stream), musaStreamCaptureStatusNone);
  std::atomic<bool> ran{false};
  musa::host::enqueue(stream, [&] { ran = true; });
  CHECK_OK(musaStreamSynchronize(stream));
  CHECK(ran);
  (void)musaGetLastError();
}

}  // namespace

TEST(captured_work_runs_at_each_launch_only) {
  Stream stream;
  Buffer buffer(kBytes);
  Graph graph;
  std::atomic<int> runs{0};
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  CHECK_EQ(status(stream), musaStreamCaptureStatusActive);
  musa::host::enqueue(stream, [&] { ++runs; });
  CHECK_OK(musaMemsetAsync(buffer.data, 3, kBytes, stream));
  graph.end(stream);
  CHECK_EQ(status(stream), musaStreamCaptureStatusNone);
  CHECK_EQ(runs.load(), 0);
  for (int i = 1; i <= 3; ++i) {
    CHECK_OK(musaMemset(buffer.data, 0, kBytes));
    CHECK_OK(musaGraphLaunch(graph.exec, stream));
    CHECK_OK(musaStreamSynchronize(stream));
    CHECK_EQ(runs.load(), i);
    std::vector<char> back(kBytes);
    CHECK_OK(musaMemcpy(back.data(), buffer.data, kBytes, musaMemcpyDeviceToHost));
    CHECK_EQ(static_cast<int>(back[kBytes - 1]), 3);
  }
}

TEST(an_executable_graph_outlives_its_graph) {
  Stream stream;
  Graph graph;
  std::atomic<int> runs{0};
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
  musa::host::enqueue(stream, [&] { ++runs; });
  graph.end(stream);
  CHECK_OK(musaGraphDestroy(std::exchange(graph.graph, nullptr)));
  CHECK_OK(musaGraphLaunch(graph.exec, nullptr));
  CHECK_OK(musaStreamSynchronize(nullptr));
  CHECK_EQ(runs.load(), 1);
}

TEST(nodes_and_their_types) {
  Stream stream;
  Buffer a(kBytes);
  Buffer b(kBytes);
  Graph graph;
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  musa::host::enqueue(stream, [] {});
  CHECK_OK(musaMemcpyAsync(a.data, b.data, kBytes, musaMemcpyDeviceToDevice, stream));
  CHECK_OK(musaMemsetAsync(a.data, 0, kBytes, stream));
  CHECK_OK(musaLaunchHostFunc(stream, [](void*) {}, nullptr));
  graph.end(stream);
  size_t count = 0;
  CHECK_OK(musaGraphGetNodes(graph.graph, nullptr, &count));
  CHECK_EQ(count, size_t{4});
  std::vector<musaGraphNode_t> nodes(10);
  count = nodes.size();
  CHECK_OK(musaGraphGetNodes(graph.graph, nodes.data(), &count));
  CHECK_EQ(count, size_t{4});
  const musaGraphNodeType expected[] = {musaGraphNodeTypeKernel, musaGraphNodeTypeMemcpy,
                                        musaGraphNodeTypeMemset, musaGraphNodeTypeHost};
  for (size_t i = 0; i < count; ++i) {
    auto type = musaGraphNodeTypeEmpty;
    CHECK_OK(musaGraphNodeGetType(nodes[i], &type));
    CHECK_EQ(type, expected[i]);
  }
  CHECK_OK(musaGraphDestroy(std::exchange(graph.graph, nullptr)));
  auto type = musaGraphNodeTypeEmpty;
  CHECK_EQ(musaGraphNodeGetType(nodes[0], &type), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(a_stream_that_waits_for_a_captured_event_is_captured) {
  Stream origin;
  Stream branch(musaStreamNonBlocking);
  Event fork(musaEventDisableTiming);
  Event join(musaEventDisableTiming);
  Graph graph;
  std::vector<int> order;
  CHECK_OK(musaStreamBeginCapture(origin, musaStreamCaptureModeGlobal));
  musa::host::enqueue(origin, [&] { order.push_back(1); });
  CHECK_OK(musaEventRecord(fork, origin));
  CHECK_OK(musaStreamWaitEvent(branch, fork, 0));
  CHECK_EQ(status(branch), musaStreamCaptureStatusActive);
  musa::host::enqueue(branch, [&] { order.push_back(2); });
  CHECK_OK(musaEventRecord(join, branch));
  CHECK_OK(musaStreamWaitEvent(origin, join, 0));
  musa::host::enqueue(origin, [&] { order.push_back(3); });
  graph.end(origin);
  CHECK_EQ(status(branch), musaStreamCaptureStatusNone);
  CHECK(order.empty());
  CHECK_OK(musaGraphLaunch(graph.exec, origin));
  CHECK_OK(musaStreamSynchronize(origin));
  CHECK((order == std::vector<int>{1, 2, 3}));
  // The events stand for nothing that ever ran.
  CHECK_EQ(musaEventSynchronize(fork), musaErrorCapturedEvent);
  CHECK_EQ(musaStreamWaitEvent(origin, fork, 0), musaErrorCapturedEvent);
  CHECK_OK(musaEventRecord(fork, origin));
  CHECK_OK(musaEventSynchronize(fork));
  (void)musaGetLastError();
}

TEST(work_that_was_not_joined_is_an_error) {
  Stream origin;
  Stream branch;
  Event fork(musaEventDisableTiming);
  CHECK_OK(musaStreamBeginCapture(origin, musaStreamCaptureModeGlobal));
  CHECK_OK(musaEventRecord(fork, origin));
  CHECK_OK(musaStreamWaitEvent(branch, fork, 0));
  musa::host::enqueue(branch, [] {});
  musaGraph_t graph = nullptr;
  CHECK_EQ(musaStreamEndCapture(branch, &graph), musaErrorStreamCaptureUnmatched);
  CHECK_EQ(musaStreamEndCapture(origin, &graph), musaErrorStreamCaptureInvalidated);
  CHECK_OK(musaStreamBeginCapture(origin, musaStreamCaptureModeGlobal));
  CHECK_OK(musaEventRecord(fork, origin));
  CHECK_OK(musaStreamWaitEvent(branch, fork, 0));
  musa::host::enqueue(branch, [] {});
  CHECK_EQ(musaStreamEndCapture(origin, &graph), musaErrorStreamCaptureUnjoined);
  CHECK(graph == nullptr);
  CHECK_EQ(status(branch), musaStreamCaptureStatusNone);
  (void)musaGetLastError();
}

TEST(waiting_for_a_capturing_stream_breaks_the_capture) {
  Stream stream;
  Event event;
  const auto begin = [&] { CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal)); };
  begin();
  CHECK_EQ(musaStreamSynchronize(stream), musaErrorStreamCaptureUnsupported);
  expect_broken(stream);
  begin();
  CHECK_EQ(musaStreamQuery(stream), musaErrorStreamCaptureUnsupported);
  expect_broken(stream);
  begin();
  CHECK_EQ(musaDeviceSynchronize(), musaErrorStreamCaptureUnsupported);
  expect_broken(stream);
  begin();
  CHECK_OK(musaEventRecord(event, stream));
  CHECK_EQ(musaEventQuery(event), musaErrorCapturedEvent);
  CHECK_EQ(musaEventSynchronize(event), musaErrorCapturedEvent);
  musaGraph_t graph = nullptr;
  CHECK_OK(musaStreamEndCapture(stream, &graph));
  CHECK_OK(musaGraphDestroy(graph));
  (void)musaGetLastError();
}

TEST(the_default_stream_may_not_depend_on_a_capturing_stream) {
  Stream stream;
  Buffer buffer(kBytes);
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
  CHECK_EQ(musaMemsetAsync(buffer.data, 0, kBytes, nullptr), musaErrorStreamCaptureImplicit);
  expect_broken(stream);
  Stream independent(musaStreamNonBlocking);
  CHECK_OK(musaStreamBeginCapture(independent, musaStreamCaptureModeRelaxed));
  CHECK_OK(musaMemsetAsync(buffer.data, 0, kBytes, nullptr));
  musaGraph_t graph = nullptr;
  CHECK_OK(musaStreamEndCapture(independent, &graph));
  CHECK_OK(musaGraphDestroy(graph));
  CHECK_EQ(musaStreamBeginCapture(nullptr, musaStreamCaptureModeRelaxed),
           musaErrorStreamCaptureUnsupported);
  (void)musaGetLastError();
}

TEST(allocations_follow_the_mode_of_the_capture) {
  Stream stream;
  void* pointer = nullptr;
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  CHECK_EQ(musaMalloc(&pointer, kBytes), musaErrorStreamCaptureUnsupported);
  expect_broken(stream);

  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  std::thread([&] {
    CHECK_EQ(musaMalloc(&pointer, kBytes), musaErrorStreamCaptureUnsupported);
  }).join();
  expect_broken(stream);

  musaGraph_t graph = nullptr;
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeThreadLocal));
  std::thread([&] {
    CHECK_OK(musaMalloc(&pointer, kBytes));
    CHECK_OK(musaFree(pointer));
  }).join();
  CHECK_OK(musaStreamEndCapture(stream, &graph));
  CHECK_OK(musaGraphDestroy(graph));

  // What an allocator does that must allocate in the middle of a capture.
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  auto mode = musaStreamCaptureModeRelaxed;
  CHECK_OK(musaThreadExchangeStreamCaptureMode(&mode));
  CHECK_EQ(mode, musaStreamCaptureModeGlobal);
  CHECK_OK(musaMalloc(&pointer, kBytes));
  CHECK_OK(musaThreadExchangeStreamCaptureMode(&mode));
  CHECK_OK(musaStreamEndCapture(stream, &graph));
  CHECK_OK(musaGraphDestroy(graph));
  CHECK_OK(musaFree(pointer));
  (void)musaGetLastError();
}

TEST(captures_may_not_merge_nor_depend_on_what_was_not_captured) {
  Stream a;
  Stream b;
  Event event(musaEventDisableTiming);
  musaGraph_t graph = nullptr;
  CHECK_OK(musaStreamBeginCapture(a, musaStreamCaptureModeRelaxed));
  CHECK_OK(musaStreamBeginCapture(b, musaStreamCaptureModeRelaxed));
  CHECK_OK(musaEventRecord(event, a));
  CHECK_EQ(musaStreamWaitEvent(b, event, 0), musaErrorStreamCaptureMerge);
  CHECK_EQ(musaStreamEndCapture(a, &graph), musaErrorStreamCaptureInvalidated);
  CHECK_EQ(musaStreamEndCapture(b, &graph), musaErrorStreamCaptureInvalidated);

  CHECK_OK(musaEventRecord(event, a));
  CHECK_OK(musaStreamBeginCapture(b, musaStreamCaptureModeRelaxed));
  CHECK_EQ(musaStreamWaitEvent(b, event, 0), musaErrorStreamCaptureIsolation);
  expect_broken(b);
}

TEST(only_the_thread_that_began_may_end) {
  Stream stream;
  musaGraph_t graph = nullptr;
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeThreadLocal));
  CHECK_EQ(musaStreamBeginCapture(stream, musaStreamCaptureModeThreadLocal), musaErrorIllegalState);
  std::thread([&] {
    CHECK_EQ(musaStreamEndCapture(stream, &graph), musaErrorStreamCaptureWrongThread);
  }).join();
  CHECK_OK(musaStreamEndCapture(stream, &graph));
  CHECK_OK(musaGraphDestroy(graph));
  CHECK_EQ(musaStreamEndCapture(stream, &graph), musaErrorIllegalState);
  (void)musaGetLastError();
}

TEST(a_stream_may_be_destroyed_in_the_middle_of_its_capture) {
  musaStream_t stream = nullptr;
  CHECK_OK(musaStreamCreate(&stream));
  CHECK_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  CHECK_OK(musaStreamDestroy(stream));
  void* pointer = nullptr;
  CHECK_OK(musaMalloc(&pointer, kBytes));  // no capture goes on any more
  CHECK_OK(musaFree(pointer));
}
