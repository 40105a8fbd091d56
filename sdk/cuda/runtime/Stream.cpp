// Streams and events.
#include "Api.h"

using musa::cuda::done;
using musa::cuda::settle_thread;

static_assert(musaStreamNonBlocking == cudaStreamNonBlocking);
static_assert(musaEventDisableTiming == cudaEventDisableTiming);
static_assert(musaEventInterprocess == cudaEventInterprocess);

musaError_t musaStreamCreate(musaStream_t* stream) {
  settle_thread();
  return done(cudaStreamCreate(stream));
}

musaError_t musaStreamCreateWithFlags(musaStream_t* stream, unsigned int flags) {
  settle_thread();
  return done(cudaStreamCreateWithFlags(stream, flags));
}

musaError_t musaStreamCreateWithPriority(musaStream_t* stream, unsigned int flags, int priority) {
  settle_thread();
  return done(cudaStreamCreateWithPriority(stream, flags, priority));
}

musaError_t musaStreamDestroy(musaStream_t stream) { return done(cudaStreamDestroy(stream)); }

musaError_t musaStreamSynchronize(musaStream_t stream) {
  settle_thread();
  return done(cudaStreamSynchronize(stream));
}

musaError_t musaStreamQuery(musaStream_t stream) {
  settle_thread();
  return done(cudaStreamQuery(stream));
}

musaError_t musaStreamWaitEvent(musaStream_t stream, musaEvent_t event, unsigned int flags) {
  settle_thread();
  return done(cudaStreamWaitEvent(stream, event, flags));
}

musaError_t musaStreamGetPriority(musaStream_t stream, int* priority) {
  settle_thread();
  return done(cudaStreamGetPriority(stream, priority));
}

musaError_t musaStreamGetFlags(musaStream_t stream, unsigned int* flags) {
  settle_thread();
  return done(cudaStreamGetFlags(stream, flags));
}

musaError_t musaLaunchHostFunc(musaStream_t stream, musaHostFn_t function, void* user_data) {
  settle_thread();
  return done(cudaLaunchHostFunc(stream, function, user_data));
}

musaError_t musaEventCreate(musaEvent_t* event) {
  settle_thread();
  return done(cudaEventCreate(event));
}

musaError_t musaEventCreateWithFlags(musaEvent_t* event, unsigned int flags) {
  settle_thread();
  return done(cudaEventCreateWithFlags(event, flags));
}

musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream) {
  settle_thread();
  return done(cudaEventRecord(event, stream));
}

musaError_t musaEventRecordWithFlags(musaEvent_t event, musaStream_t stream, unsigned int flags) {
  settle_thread();
  return done(cudaEventRecordWithFlags(event, stream, flags));
}

musaError_t musaEventQuery(musaEvent_t event) { return done(cudaEventQuery(event)); }

musaError_t musaEventSynchronize(musaEvent_t event) { return done(cudaEventSynchronize(event)); }

musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start, musaEvent_t end) {
  return done(cudaEventElapsedTime(milliseconds, start, end));
}

musaError_t musaEventDestroy(musaEvent_t event) { return done(cudaEventDestroy(event)); }
