// Graphs and stream capture.
#include "Api.h"
#include "musa_cuda.h"

namespace musa::cuda {

std::atomic<int> captures_under_way{0};

}  // namespace musa::cuda

using musa::cuda::captures_under_way;
using musa::cuda::done;
using musa::cuda::refuse;
using musa::cuda::settle_thread;

static_assert(int{musaStreamCaptureModeRelaxed} == int{cudaStreamCaptureModeRelaxed});
static_assert(int{musaStreamCaptureStatusInvalidated} == int{cudaStreamCaptureStatusInvalidated});
static_assert(int{musaGraphNodeTypeEmpty} == int{cudaGraphNodeTypeEmpty});

musaError_t musaStreamBeginCapture(musaStream_t stream, musaStreamCaptureMode mode) {
  settle_thread();
  const cudaError_t error =
      cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode));
  if (error == cudaSuccess) captures_under_way.fetch_add(1);
  return done(error);
}

musaError_t musaStreamEndCapture(musaStream_t stream, musaGraph_t* graph) {
  settle_thread();
  // A capture that was invalidated ends, too, with that error.
  cudaStreamCaptureStatus before = cudaStreamCaptureStatusNone;
  (void)cudaStreamIsCapturing(stream, &before);
  const cudaError_t error = cudaStreamEndCapture(stream, graph);
  cudaStreamCaptureStatus after = before;
  if (before != cudaStreamCaptureStatusNone &&
      cudaStreamIsCapturing(stream, &after) == cudaSuccess &&
      after == cudaStreamCaptureStatusNone) {
    captures_under_way.fetch_sub(1);
  }
  return done(error);
}

musaError_t musaStreamIsCapturing(musaStream_t stream, musaStreamCaptureStatus* status) {
  settle_thread();
  if (status == nullptr) return refuse(musaErrorInvalidValue);
  cudaStreamCaptureStatus cuda = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &cuda);
  *status = static_cast<musaStreamCaptureStatus>(cuda);
  return done(error);
}

musaError_t musaStreamGetCaptureInfo(musaStream_t stream, musaStreamCaptureStatus* status,
                                     unsigned long long* id) {
  settle_thread();
  if (status == nullptr) return refuse(musaErrorInvalidValue);
  cudaStreamCaptureStatus cuda = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamGetCaptureInfo(stream, &cuda, id);
  *status = static_cast<musaStreamCaptureStatus>(cuda);
  return done(error);
}

musaError_t musaThreadExchangeStreamCaptureMode(musaStreamCaptureMode* mode) {
  if (mode == nullptr) return refuse(musaErrorInvalidValue);
  auto cuda = static_cast<cudaStreamCaptureMode>(*mode);
  const cudaError_t error = cudaThreadExchangeStreamCaptureMode(&cuda);
  if (error == cudaSuccess) *mode = static_cast<musaStreamCaptureMode>(cuda);
  return done(error);
}

musaError_t musaGraphGetNodes(musaGraph_t graph, musaGraphNode_t* nodes, size_t* count) {
  return done(cudaGraphGetNodes(graph, nodes, count));
}

musaError_t musaGraphNodeGetType(musaGraphNode_t node, musaGraphNodeType* type) {
  if (type == nullptr) return refuse(musaErrorInvalidValue);
  cudaGraphNodeType cuda = cudaGraphNodeTypeEmpty;
  const cudaError_t error = cudaGraphNodeGetType(node, &cuda);
  if (error == cudaSuccess) *type = static_cast<musaGraphNodeType>(cuda);
  return done(error);
}

musaError_t musaGraphInstantiate(musaGraphExec_t* exec, musaGraph_t graph,
                                 unsigned long long flags) {
  settle_thread();
  return done(cudaGraphInstantiate(exec, graph, flags));
}

musaError_t musaGraphLaunch(musaGraphExec_t exec, musaStream_t stream) {
  settle_thread();
  return done(cudaGraphLaunch(exec, stream));
}

musaError_t musaGraphExecDestroy(musaGraphExec_t exec) { return done(cudaGraphExecDestroy(exec)); }

musaError_t musaGraphDestroy(musaGraph_t graph) { return done(cudaGraphDestroy(graph)); }
