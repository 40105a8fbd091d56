// Handles between processes: CUDA's, which have the same size.
#include <cstring>

#include "Api.h"

using musa::cuda::done;
using musa::cuda::refuse;
using musa::cuda::settle_thread;

static_assert(sizeof(musaIpcMemHandle_t) == sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(musaIpcEventHandle_t) == sizeof(cudaIpcEventHandle_t));

musaError_t musaIpcGetMemHandle(musaIpcMemHandle_t* handle, void* pointer) {
  if (handle == nullptr) return refuse(musaErrorInvalidValue);
  settle_thread();
  return done(cudaIpcGetMemHandle(reinterpret_cast<cudaIpcMemHandle_t*>(handle), pointer));
}

musaError_t musaIpcOpenMemHandle(void** pointer, musaIpcMemHandle_t handle, unsigned int flags) {
  settle_thread();
  cudaIpcMemHandle_t cuda;
  std::memcpy(&cuda, &handle, sizeof(cuda));
  return done(cudaIpcOpenMemHandle(pointer, cuda, flags));
}

musaError_t musaIpcCloseMemHandle(void* pointer) {
  settle_thread();
  return done(cudaIpcCloseMemHandle(pointer));
}

musaError_t musaIpcGetEventHandle(musaIpcEventHandle_t* handle, musaEvent_t event) {
  if (handle == nullptr) return refuse(musaErrorInvalidValue);
  settle_thread();
  return done(cudaIpcGetEventHandle(reinterpret_cast<cudaIpcEventHandle_t*>(handle), event));
}

musaError_t musaIpcOpenEventHandle(musaEvent_t* event, musaIpcEventHandle_t handle) {
  settle_thread();
  cudaIpcEventHandle_t cuda;
  std::memcpy(&cuda, &handle, sizeof(cuda));
  return done(cudaIpcOpenEventHandle(event, cuda));
}
