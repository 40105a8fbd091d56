// libmusart: every function of the API with arguments that make no sense. Each is refused with the
// error that is documented, nothing hangs or crashes, and the next correct call works.
#include <climits>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime_support.h"

namespace {

struct Refused {
  const char* what;
  std::function<musaError_t()> call;
  musaError_t expected;
};

int a_local = 0;  // memory that the runtime does not know
void* const kLocal = &a_local;
void* out = nullptr;

template <typename Handle>
Handle garbage() {
  return reinterpret_cast<Handle>(uintptr_t{0x1234567890});
}

musaStream_t destroyed_stream() {
  musaStream_t stream = nullptr;
  CHECK_OK(musaStreamCreate(&stream));
  CHECK_OK(musaStreamDestroy(stream));
  return stream;
}

musaEvent_t destroyed_event() {
  musaEvent_t event = nullptr;
  CHECK_OK(musaEventCreate(&event));
  CHECK_OK(musaEventDestroy(event));
  return event;
}

// A little of everything, right.
void expect_all_is_well() {
  (void)musaGetLastError();
  CHECK_OK(musaSetDevice(0));
  Stream stream;
  Event event;
  Buffer buffer(kBytes);
  std::vector<char> host = pattern(kBytes);
  CHECK_OK(
      musaMemcpyAsync(buffer.data, host.data(), kBytes, musaMemcpyHostToDevice, stream.handle));
  CHECK_OK(musaEventRecord(event, stream));
  CHECK_OK(musaStreamWaitEvent(nullptr, event, 0));
  std::fill(host.begin(), host.end(), 0);
  CHECK_OK(musaMemcpy(host.data(), buffer.data, kBytes, musaMemcpyDeviceToHost));
  CHECK(host == pattern(kBytes));
  CHECK_OK(musaDeviceSynchronize());
  CHECK_OK(musaGetLastError());
}

void expect_refusals(const std::vector<Refused>& cases) {
  for (const Refused& refused : cases) {
    (void)musaGetLastError();
    const musaError_t error = refused.call();
    if (error != refused.expected) {
      check::fail(__FILE__, __LINE__,
                  std::string(refused.what) + ": got " + musaGetErrorName(error) + ", expected " +
                      musaGetErrorName(refused.expected));
    }
    // What was refused is the thread's last error, once.
    CHECK_EQ(musaGetLastError(), refused.expected);
    CHECK_EQ(musaGetLastError(), musaSuccess);
    expect_all_is_well();
  }
}

#define REFUSED(call, expected)           \
  Refused {                               \
    #call, [&] { return call; }, expected \
  }

constexpr auto kValue = musaErrorInvalidValue;
constexpr auto kHandle = musaErrorInvalidResourceHandle;
constexpr auto kDevice = musaErrorInvalidDevice;
constexpr auto kMemory = musaErrorMemoryAllocation;

}  // namespace

TEST(devices) {
  musaDeviceProp prop;
  int value = 0;
  expect_refusals({
      REFUSED(musaGetDeviceCount(nullptr), kValue),
      REFUSED(musaGetDevice(nullptr), kValue),
      REFUSED(musaSetDevice(-1), kDevice),
      REFUSED(musaSetDevice(INT_MAX), kDevice),
      REFUSED(musaSetDevice(INT_MIN), kDevice),
      REFUSED(musaGetDeviceProperties(nullptr, 0), kValue),
      REFUSED(musaGetDeviceProperties(&prop, 99), kDevice),
      REFUSED(musaGetDeviceProperties(&prop, -1), kDevice),
      REFUSED(musaDeviceCanAccessPeer(nullptr, 0, 1), kValue),
      REFUSED(musaDeviceCanAccessPeer(&value, 0, 99), kDevice),
      REFUSED(musaDeviceCanAccessPeer(&value, -1, 0), kDevice),
      REFUSED(musaDeviceEnablePeerAccess(99, 0), kDevice),
      REFUSED(musaDeviceEnablePeerAccess(0, 0), kDevice),
      REFUSED(musaDeviceEnablePeerAccess(1, 1), kValue),
      REFUSED(musaDeviceDisablePeerAccess(1), musaErrorPeerAccessNotEnabled),
      REFUSED(musaDeviceDisablePeerAccess(-1), kDevice),
      REFUSED(musaDriverGetVersion(nullptr), kValue),
      REFUSED(musaRuntimeGetVersion(nullptr), kValue),
  });
}

TEST(memory) {
  size_t bytes = 0;
  unsigned flags = 0;
  Buffer buffer(kBytes);
  char* inside = static_cast<char*>(buffer.data) + 1;
  musaPointerAttributes attributes;
  expect_refusals({
      REFUSED(musaMalloc(nullptr, 8), kValue),
      REFUSED(musaMalloc(&out, SIZE_MAX), kMemory),
      REFUSED(musaMalloc(&out, static_cast<size_t>(-1) / 2), kMemory),
      REFUSED(musaMalloc(&out, size_t{1} << 50), kMemory),
      REFUSED(musaFree(kLocal), kValue),
      REFUSED(musaFree(inside), kValue),
      REFUSED(musaFree(reinterpret_cast<void*>(8)), kValue),
      REFUSED(musaMallocManaged(&out, 0, musaMemAttachGlobal), kValue),
      REFUSED(musaMallocManaged(&out, 8, 0), kValue),
      REFUSED(musaMallocManaged(&out, 8, 7), kValue),
      REFUSED(musaMallocManaged(&out, SIZE_MAX, musaMemAttachGlobal), kMemory),
      REFUSED(musaMallocHost(nullptr, 8), kValue),
      REFUSED(musaMallocHost(&out, SIZE_MAX), kMemory),
      REFUSED(musaHostAlloc(&out, 8, ~0u), kValue),
      REFUSED(musaFreeHost(kLocal), kValue),
      REFUSED(musaFreeHost(buffer.data), kValue),
      REFUSED(musaHostRegister(nullptr, 8, 0), kValue),
      REFUSED(musaHostRegister(kLocal, 0, 0), kValue),
      REFUSED(musaHostRegister(kLocal, 8, ~0u), kValue),
      REFUSED(musaHostRegister(kLocal, SIZE_MAX, 0), kValue),
      REFUSED(musaHostRegister(reinterpret_cast<void*>(4096), 8, 0), kValue),
      REFUSED(musaHostRegister(kLocal, size_t{1} << 46, 0), kValue),
      REFUSED(musaHostRegister(buffer.data, 8, 0), musaErrorHostMemoryAlreadyRegistered),
      REFUSED(musaHostUnregister(nullptr), kValue),
      REFUSED(musaHostUnregister(kLocal), musaErrorHostMemoryNotRegistered),
      REFUSED(musaHostUnregister(buffer.data), musaErrorHostMemoryNotRegistered),
      REFUSED(musaHostGetDevicePointer(nullptr, kLocal, 0), kValue),
      REFUSED(musaHostGetDevicePointer(&out, kLocal, 0), kValue),
      REFUSED(musaHostGetDevicePointer(&out, buffer.data, 0), kValue),
      REFUSED(musaHostGetFlags(&flags, kLocal), kValue),
      REFUSED(musaHostGetFlags(nullptr, kLocal), kValue),
      REFUSED(musaMemGetInfo(nullptr, &bytes), kValue),
      REFUSED(musaMemGetInfo(&bytes, nullptr), kValue),
      REFUSED(musaPointerGetAttributes(nullptr, buffer.data), kValue),
      REFUSED(musaPointerGetAttributes(&attributes, nullptr), kValue),
  });
}

TEST(copies) {
  Buffer buffer(1024);
  std::vector<char> host(4096);
  const auto h2d = musaMemcpyHostToDevice;
  const musaStream_t dead = destroyed_stream();
  expect_refusals({
      REFUSED(musaMemcpy(buffer.data, host.data(), SIZE_MAX, h2d), kValue),
      REFUSED(musaMemcpy(buffer.data, host.data(), 1025, h2d), kValue),
      REFUSED(musaMemcpy(nullptr, host.data(), 8, h2d), kValue),
      REFUSED(musaMemcpy(buffer.data, nullptr, 8, h2d), kValue),
      REFUSED(musaMemcpy(host.data(), buffer.data, 8, h2d), kValue),
      REFUSED(musaMemcpy(buffer.data, host.data(), 8, static_cast<musaMemcpyKind>(-1)),
              musaErrorInvalidMemcpyDirection),
      REFUSED(musaMemcpyAsync(buffer.data, host.data(), 8, h2d, dead), kHandle),
      REFUSED(musaMemcpyAsync(buffer.data, host.data(), 8, h2d, garbage<musaStream_t>()), kHandle),
      REFUSED(musaMemcpyPeer(buffer.data, 0, buffer.data, 99, 8), kDevice),
      REFUSED(musaMemcpyPeer(buffer.data, -1, buffer.data, 0, 8), kDevice),
      REFUSED(musaMemcpyPeer(buffer.data, 1, buffer.data, 0, 8), kValue),
      REFUSED(musaMemcpyPeerAsync(buffer.data, 0, host.data(), 0, 8, nullptr), kValue),
      REFUSED(musaMemcpyPeerAsync(buffer.data, 0, buffer.data, 0, 8, dead), kHandle),
      REFUSED(musaMemset(nullptr, 0, 8), kValue),
      REFUSED(musaMemset(kLocal, 0, 4), kValue),
      REFUSED(musaMemset(buffer.data, 0, 1025), kValue),
      REFUSED(musaMemset(buffer.data, 0, SIZE_MAX), kValue),
      REFUSED(musaMemsetAsync(buffer.data, 0, 8, dead), kHandle),
  });
}

TEST(streams) {
  musaStream_t stream = nullptr;
  int priority = 0;
  unsigned flags = 0;
  Event event;
  std::vector<Refused> cases{
      REFUSED(musaStreamCreate(nullptr), kValue),
      REFUSED(musaStreamCreateWithFlags(&stream, 2), kValue),
      REFUSED(musaStreamCreateWithFlags(nullptr, 0), kValue),
      REFUSED(musaStreamCreateWithPriority(nullptr, 0, 0), kValue),
      REFUSED(musaStreamDestroy(nullptr), kHandle),
      REFUSED(musaStreamDestroy(musaStreamLegacy), kHandle),
      REFUSED(musaStreamDestroy(musaStreamPerThread), kHandle),
      REFUSED(musaStreamGetPriority(nullptr, nullptr), kValue),
      REFUSED(musaStreamGetFlags(nullptr, nullptr), kValue),
      REFUSED(musaStreamWaitEvent(nullptr, nullptr, 0), kHandle),
      REFUSED(musaStreamWaitEvent(nullptr, event, 1), kValue),
      REFUSED(musaLaunchHostFunc(nullptr, nullptr, nullptr), kValue),
  };
  for (const musaStream_t bad : {destroyed_stream(), garbage<musaStream_t>()}) {
    cases.push_back({"destroy", [=] { return musaStreamDestroy(bad); }, kHandle});
    cases.push_back({"synchronize", [=] { return musaStreamSynchronize(bad); }, kHandle});
    cases.push_back({"query", [=] { return musaStreamQuery(bad); }, kHandle});
    cases.push_back({"wait", [=, &event] { return musaStreamWaitEvent(bad, event, 0); }, kHandle});
    cases.push_back(
        {"priority", [=, &priority] { return musaStreamGetPriority(bad, &priority); }, kHandle});
    cases.push_back({"flags", [=, &flags] { return musaStreamGetFlags(bad, &flags); }, kHandle});
    cases.push_back(
        {"host function", [=] { return musaLaunchHostFunc(bad, [](void*) {}, nullptr); }, kHandle});
  }
  expect_refusals(cases);
}

TEST(events) {
  musaEvent_t event = nullptr;
  float elapsed = 0;
  musaIpcEventHandle_t handle;
  Event good;
  std::vector<Refused> cases{
      REFUSED(musaEventCreate(nullptr), kValue),
      REFUSED(musaEventCreateWithFlags(&event, ~0u), kValue),
      REFUSED(musaEventCreateWithFlags(&event, musaEventInterprocess), kValue),
      REFUSED(musaEventRecord(good, destroyed_stream()), kHandle),
      REFUSED(musaEventRecordWithFlags(good, nullptr, 99), kValue),
      REFUSED(musaEventElapsedTime(nullptr, good, good), kValue),
      REFUSED(musaEventElapsedTime(&elapsed, good, good), kHandle),  // never recorded
      REFUSED(musaIpcGetEventHandle(nullptr, good), kValue),
      REFUSED(musaIpcGetEventHandle(&handle, good), kValue),
      REFUSED(musaIpcOpenEventHandle(nullptr, {}), kValue),
      REFUSED(musaIpcOpenEventHandle(&event, {}), kValue),
  };
  for (const musaEvent_t bad : {destroyed_event(), garbage<musaEvent_t>(), musaEvent_t{nullptr}}) {
    cases.push_back({"destroy", [=] { return musaEventDestroy(bad); }, kHandle});
    cases.push_back({"record", [=] { return musaEventRecord(bad, nullptr); }, kHandle});
    cases.push_back({"query", [=] { return musaEventQuery(bad); }, kHandle});
    cases.push_back({"synchronize", [=] { return musaEventSynchronize(bad); }, kHandle});
    cases.push_back({"elapsed",
                     [=, &elapsed, &good] { return musaEventElapsedTime(&elapsed, good, bad); },
                     kHandle});
    cases.push_back(
        {"export", [=, &handle] { return musaIpcGetEventHandle(&handle, bad); }, kHandle});
  }
  expect_refusals(cases);
}

TEST(pools) {
  musaMemPool_t pool = nullptr;
  CHECK_OK(musaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t value = 0;
  Buffer buffer(kBytes);
  expect_refusals({
      REFUSED(musaDeviceGetDefaultMemPool(nullptr, 0), kValue),
      REFUSED(musaDeviceGetDefaultMemPool(&pool, 99), kDevice),
      REFUSED(musaDeviceGetMemPool(&pool, -1), kDevice),
      REFUSED(musaDeviceSetMemPool(0, nullptr), kValue),
      REFUSED(musaDeviceSetMemPool(1, pool), kValue),
      REFUSED(musaDeviceSetMemPool(99, pool), kDevice),
      REFUSED(musaMallocAsync(nullptr, 8, nullptr), kValue),
      REFUSED(musaMallocAsync(&out, SIZE_MAX, nullptr), kMemory),
      REFUSED(musaMallocAsync(&out, 8, destroyed_stream()), kHandle),
      REFUSED(musaMallocFromPoolAsync(&out, 8, nullptr, nullptr), kValue),
      REFUSED(musaMallocFromPoolAsync(&out, 8, garbage<musaMemPool_t>(), nullptr), kValue),
      REFUSED(musaFreeAsync(kLocal, nullptr), kValue),
      REFUSED(musaFreeAsync(static_cast<char*>(buffer.data) + 8, nullptr), kValue),
      REFUSED(musaFreeAsync(buffer.data, destroyed_stream()), kHandle),
      REFUSED(musaMemPoolSetAttribute(nullptr, musaMemPoolAttrReleaseThreshold, &value), kValue),
      REFUSED(musaMemPoolSetAttribute(pool, musaMemPoolAttrReleaseThreshold, nullptr), kValue),
      REFUSED(musaMemPoolGetAttribute(pool, static_cast<musaMemPoolAttr>(0), &value), kValue),
      REFUSED(musaMemPoolGetAttribute(garbage<musaMemPool_t>(), musaMemPoolAttrReleaseThreshold,
                                      &value),
              kValue),
      REFUSED(musaMemPoolTrimTo(nullptr, 0), kValue),
  });
}

TEST(handles_of_other_processes) {
  musaIpcMemHandle_t handle;
  std::memset(&handle, 0xff, sizeof(handle));
  Buffer buffer(kBytes);
  const auto flags = musaIpcMemLazyEnablePeerAccess;
  expect_refusals({
      REFUSED(musaIpcGetMemHandle(nullptr, buffer.data), kValue),
      REFUSED(musaIpcGetMemHandle(&handle, kLocal), kValue),
      REFUSED(musaIpcGetMemHandle(&handle, nullptr), kValue),
      REFUSED(musaIpcOpenMemHandle(nullptr, handle, flags), kValue),
      REFUSED(musaIpcOpenMemHandle(&out, handle, flags), kValue),
      REFUSED(musaIpcOpenMemHandle(&out, handle, 0), kValue),
      REFUSED(musaIpcCloseMemHandle(nullptr), kValue),
      REFUSED(musaIpcCloseMemHandle(buffer.data), kValue),
  });
}

TEST(graphs) {
  Stream stream;
  musaGraph_t graph = nullptr;
  musaGraphExec_t exec = nullptr;
  size_t count = 0;
  auto status = musaStreamCaptureStatusNone;
  auto type = musaGraphNodeTypeEmpty;
  auto mode = static_cast<musaStreamCaptureMode>(9);
  const auto global = musaStreamCaptureModeGlobal;
  expect_refusals({
      REFUSED(musaStreamBeginCapture(destroyed_stream(), global), kHandle),
      REFUSED(musaStreamBeginCapture(stream, mode), kValue),
      REFUSED(musaStreamBeginCapture(nullptr, global), musaErrorStreamCaptureUnsupported),
      REFUSED(musaStreamEndCapture(stream, nullptr), kValue),
      REFUSED(musaStreamEndCapture(stream, &graph), musaErrorIllegalState),
      REFUSED(musaStreamIsCapturing(stream, nullptr), kValue),
      REFUSED(musaStreamIsCapturing(destroyed_stream(), &status), kHandle),
      REFUSED(musaStreamGetCaptureInfo(stream, nullptr, nullptr), kValue),
      REFUSED(musaThreadExchangeStreamCaptureMode(nullptr), kValue),
      REFUSED(musaThreadExchangeStreamCaptureMode(&mode), kValue),
      REFUSED(musaGraphGetNodes(nullptr, nullptr, &count), kValue),
      REFUSED(musaGraphGetNodes(garbage<musaGraph_t>(), nullptr, &count), kValue),
      REFUSED(musaGraphNodeGetType(nullptr, &type), kValue),
      REFUSED(musaGraphInstantiate(&exec, nullptr, 0), kValue),
      REFUSED(musaGraphInstantiate(nullptr, garbage<musaGraph_t>(), 0), kValue),
      REFUSED(musaGraphLaunch(nullptr, stream), kValue),
      REFUSED(musaGraphLaunch(garbage<musaGraphExec_t>(), stream), kValue),
      REFUSED(musaGraphExecDestroy(nullptr), kValue),
      REFUSED(musaGraphDestroy(garbage<musaGraph_t>()), kValue),
  });
}

TEST(kernels) {
  musaFuncAttributes attributes;
  int blocks = 0;
  constexpr auto kFunction = musaErrorInvalidDeviceFunction;
  const void* unknown = kLocal;
  const auto shared = musaFuncAttributeMaxDynamicSharedMemorySize;
  expect_refusals({
      REFUSED(musaFuncGetAttributes(nullptr, unknown), kValue),
      REFUSED(musaFuncGetAttributes(&attributes, unknown), kFunction),
      REFUSED(musaFuncGetAttributes(&attributes, static_cast<const void*>(nullptr)), kFunction),
      REFUSED(musaFuncSetAttribute(unknown, shared, 0), kFunction),
      REFUSED(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, unknown, 32, 0), kFunction),
      REFUSED(musaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, unknown, 32, 0), kValue),
      REFUSED(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, unknown, -1, 0), kValue),
      REFUSED(musaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, unknown, 32, 0, 9),
              kValue),
      REFUSED(musaLaunchKernel(unknown, dim3(1), dim3(1), nullptr, 0, nullptr), kFunction),
  });
}
