// Memory, copies and pools.
#include <algorithm>

#include "Api.h"
#include "Ranges.h"
#include "musa_cuda.h"

using musa::cuda::done;
using musa::cuda::ordinal;
using musa::cuda::refuse;
using musa::cuda::settle_thread;

namespace musa::cuda {
namespace {

cudaMemcpyKind kind_of(musaMemcpyKind kind) { return static_cast<cudaMemcpyKind>(kind); }

// What CUDA knows of an address, without an error for one that it does not know.
cudaPointerAttributes attributes_of(const void* pointer) {
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, pointer) != cudaSuccess) {
    (void)cudaGetLastError();
    found = {};
    found.type = cudaMemoryTypeUnregistered;
  }
  return found;
}

bool reachable(const void* pointer, int device) {
  const cudaPointerAttributes found = attributes_of(pointer);
  switch (found.type) {
    case cudaMemoryTypeHost:
      return found.devicePointer != nullptr;
    case cudaMemoryTypeManaged:
      return true;
    case cudaMemoryTypeDevice:
      // A peer's memory that was not opened faults in the kernel, as it would on a card: asking the
      // driver about it at every call would cost more than small calls take.
      return found.device == ordinal(device) || device_of(found.device) >= 0;
    default:
      return false;
  }
}

}  // namespace

std::atomic<void (*)()> give_back{nullptr};

void on_out_of_memory(void (*function)()) { give_back = function; }

// Once more where a library had memory to give back.
template <typename Allocate>
musaError_t allocate(Allocate&& call) {
  settle_thread();
  cudaError_t error = call();
  if (void (*function)() = give_back.load(); error == cudaErrorMemoryAllocation && function) {
    (void)cudaGetLastError();
    function();
    error = call();
  }
  return done(error);
}

bool device_accessible(const void* pointer, size_t bytes, int device) {
  if (bytes == 0 || is_in_range(pointer, bytes)) return true;
  const auto* first = static_cast<const char*>(pointer);
  if (!reachable(first, device)) return false;
  // An operand may begin in an allocation and end behind it.
  return bytes == 1 || (first + (bytes - 1) > first && reachable(first + (bytes - 1), device));
}

}  // namespace musa::cuda

musaError_t musaMalloc(void** pointer, size_t bytes) {
  const musaError_t error = musa::cuda::allocate([&] { return cudaMalloc(pointer, bytes); });
  if (error == musaSuccess) musa::cuda::remember_range(*pointer, bytes);
  return error;
}

musaError_t musaFree(void* pointer) {
  // Before: another thread may be given the address at once.
  musa::cuda::forget_range(pointer);
  return done(cudaFree(pointer));
}

musaError_t musaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  settle_thread();
  return done(cudaMallocManaged(pointer, bytes, flags));
}

musaError_t musaMallocHost(void** pointer, size_t bytes) {
  settle_thread();
  return done(cudaMallocHost(pointer, bytes));
}

musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  settle_thread();
  return done(cudaHostAlloc(pointer, bytes, flags));
}

musaError_t musaFreeHost(void* pointer) { return done(cudaFreeHost(pointer)); }

musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  settle_thread();
  return done(cudaHostRegister(pointer, bytes, flags));
}

musaError_t musaHostUnregister(void* pointer) { return done(cudaHostUnregister(pointer)); }

musaError_t musaHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                     unsigned int flags) {
  settle_thread();
  return done(cudaHostGetDevicePointer(device_pointer, host_pointer, flags));
}

musaError_t musaHostGetFlags(unsigned int* flags, void* host_pointer) {
  return done(cudaHostGetFlags(flags, host_pointer));
}

musaError_t musaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  settle_thread();
  return done(cudaMemGetInfo(free_bytes, total_bytes));
}

musaError_t musaPointerGetAttributes(musaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return refuse(musaErrorInvalidValue);
  settle_thread();
  cudaPointerAttributes found{};
  const cudaError_t error = cudaPointerGetAttributes(&found, pointer);
  if (error != cudaSuccess) return done(error);
  attributes->type = static_cast<musaMemoryType>(found.type);
  attributes->device = found.type == cudaMemoryTypeUnregistered
                           ? musaInvalidDeviceId
                           : musa::cuda::device_of(found.device);
  attributes->devicePointer = found.devicePointer;
  attributes->hostPointer = found.hostPointer;
  return musaSuccess;
}

// ---- copies ----------------------------------------------------------------------------------

musaError_t musaMemcpy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  settle_thread();
  return done(cudaMemcpy(dst, src, bytes, musa::cuda::kind_of(kind)));
}

musaError_t musaMemcpyAsync(void* dst, const void* src, size_t bytes, musaMemcpyKind kind,
                            musaStream_t stream) {
  settle_thread();
  return done(cudaMemcpyAsync(dst, src, bytes, musa::cuda::kind_of(kind), stream));
}

musaError_t musaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                           size_t bytes) {
  const int to = ordinal(dst_device), from = ordinal(src_device);
  if (to < 0 || from < 0) return refuse(musaErrorInvalidDevice);
  settle_thread();
  return done(cudaMemcpyPeer(dst, to, src, from, bytes));
}

musaError_t musaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                size_t bytes, musaStream_t stream) {
  const int to = ordinal(dst_device), from = ordinal(src_device);
  if (to < 0 || from < 0) return refuse(musaErrorInvalidDevice);
  settle_thread();
  return done(cudaMemcpyPeerAsync(dst, to, src, from, bytes, stream));
}

musaError_t musaMemset(void* pointer, int value, size_t bytes) {
  settle_thread();
  return done(cudaMemset(pointer, value, bytes));
}

musaError_t musaMemsetAsync(void* pointer, int value, size_t bytes, musaStream_t stream) {
  settle_thread();
  return done(cudaMemsetAsync(pointer, value, bytes, stream));
}

// ---- pools -----------------------------------------------------------------------------------

musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device) {
  if (ordinal(device) < 0) return refuse(musaErrorInvalidDevice);
  return done(cudaDeviceGetDefaultMemPool(pool, ordinal(device)));
}

musaError_t musaDeviceGetMemPool(musaMemPool_t* pool, int device) {
  if (ordinal(device) < 0) return refuse(musaErrorInvalidDevice);
  return done(cudaDeviceGetMemPool(pool, ordinal(device)));
}

musaError_t musaDeviceSetMemPool(int device, musaMemPool_t pool) {
  if (ordinal(device) < 0) return refuse(musaErrorInvalidDevice);
  return done(cudaDeviceSetMemPool(ordinal(device), pool));
}

musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream) {
  return musa::cuda::allocate([&] { return cudaMallocAsync(pointer, bytes, stream); });
}

musaError_t musaMallocFromPoolAsync(void** pointer, size_t bytes, musaMemPool_t pool,
                                    musaStream_t stream) {
  return musa::cuda::allocate(
      [&] { return cudaMallocFromPoolAsync(pointer, bytes, pool, stream); });
}

musaError_t musaFreeAsync(void* pointer, musaStream_t stream) {
  settle_thread();
  return done(cudaFreeAsync(pointer, stream));
}

musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return done(cudaMemPoolSetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value));
}

musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return done(cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value));
}

musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t keep) {
  return done(cudaMemPoolTrimTo(pool, keep));
}
