// libmusart: devices, memory, copies, streams, events, errors, the pool.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "musa_host.h"
#include "musa_runtime_api.h"

namespace {

constexpr size_t kBytes = 1000;

// A device allocation that ends with its scope.
struct Buffer {
  explicit Buffer(size_t bytes, int device = 0) {
    CHECK_EQ(musaSetDevice(device), musaSuccess);
    CHECK_EQ(musaMalloc(&data, bytes), musaSuccess);
    CHECK_EQ(musaSetDevice(0), musaSuccess);
  }
  ~Buffer() { (void)musaFree(data); }
  Buffer(const Buffer&) = delete;
  void* data = nullptr;
};

struct Stream {
  Stream() { CHECK_EQ(musaStreamCreate(&handle), musaSuccess); }
  ~Stream() { (void)musaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  musaStream_t handle = nullptr;
};

size_t free_memory() {
  size_t free = 0;
  size_t total = 0;
  CHECK_EQ(musaMemGetInfo(&free, &total), musaSuccess);
  CHECK(free <= total);
  return free;
}

std::vector<char> pattern(size_t bytes) {
  std::vector<char> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7 + 1);
  return data;
}

}  // namespace

// ---- devices
// -------------------------------------------------------------------------------------

TEST(two_devices_by_default) {
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);
  CHECK_EQ(count, 2);
}

TEST_WITH_ENV(device_count_is_settable, "TORCH_MUSA_HOST_DEVICES=5") {
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);
  CHECK_EQ(count, 5);
  CHECK_EQ(musaSetDevice(4), musaSuccess);
}

TEST_WITH_ENV(no_device, "TORCH_MUSA_HOST_DEVICES=0") {
  int count = -1;
  CHECK_EQ(musaGetDeviceCount(&count), musaErrorNoDevice);
  CHECK_EQ(count, 0);
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, 1), musaErrorNoDevice);
  CHECK_EQ(musaSetDevice(0), musaErrorNoDevice);
}

TEST_WITH_ENV(device_count_typo_keeps_the_default, "TORCH_MUSA_HOST_DEVICES=two") {
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);
  CHECK_EQ(count, 2);
}

TEST(current_device_is_per_thread) {
  CHECK_EQ(musaSetDevice(1), musaSuccess);
  int other = -1;
  std::thread([&] { (void)musaGetDevice(&other); }).join();
  CHECK_EQ(other, 0);
  int mine = -1;
  CHECK_EQ(musaGetDevice(&mine), musaSuccess);
  CHECK_EQ(mine, 1);
  CHECK_EQ(musaSetDevice(0), musaSuccess);
}

TEST(device_out_of_range) {
  for (int device : {-1, 2, 100}) CHECK_EQ(musaSetDevice(device), musaErrorInvalidDevice);
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 2), musaErrorInvalidDevice);
  int device = -1;
  CHECK_EQ(musaGetDevice(&device), musaSuccess);
  CHECK_EQ(device, 0);
  (void)musaGetLastError();
}

TEST(properties) {
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 1), musaSuccess);
  CHECK_EQ(std::string(prop.name), std::string("MUSA host stand-in (mp_31)"));
  CHECK_EQ(prop.major * 10 + prop.minor, 31);
  CHECK_EQ(prop.warpSize, 32);
  CHECK(prop.totalGlobalMem >= size_t{256} << 20);
  CHECK(prop.maxThreadsPerBlock == 1024 && prop.multiProcessorCount > 0);
}

TEST_WITH_ENV(architecture_profile, "MUSA_ARCH=mp_21") {
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 0), musaSuccess);
  CHECK_EQ(prop.major * 10 + prop.minor, 21);
  CHECK_EQ(prop.warpSize, 128);
}

TEST(peers) {
  int can = -1;
  CHECK_EQ(musaDeviceCanAccessPeer(&can, 0, 1), musaSuccess);
  CHECK_EQ(can, 1);
  CHECK_EQ(musaDeviceCanAccessPeer(&can, 0, 0), musaSuccess);
  CHECK_EQ(can, 0);
  Buffer remote(kBytes, 1);
  CHECK(!musa::host::device_accessible(remote.data, kBytes, 0));
  CHECK_EQ(musaDeviceEnablePeerAccess(1, 0), musaSuccess);
  CHECK(musa::host::device_accessible(remote.data, kBytes, 0));
  CHECK_EQ(musaDeviceEnablePeerAccess(1, 0), musaErrorPeerAccessAlreadyEnabled);
  CHECK_EQ(musaDeviceEnablePeerAccess(0, 0), musaErrorInvalidDevice);
  (void)musaGetLastError();
}

TEST(versions) {
  int driver = 0;
  int runtime = 0;
  CHECK_EQ(musaDriverGetVersion(&driver), musaSuccess);
  CHECK_EQ(musaRuntimeGetVersion(&runtime), musaSuccess);
  CHECK(driver >= runtime && runtime > 0);
}

// ---- memory
// --------------------------------------------------------------------------------------

TEST(malloc_is_aligned_and_accounted) {
  const size_t before = free_memory();
  {
    Buffer a(1);
    Buffer b(300);
    CHECK_EQ(reinterpret_cast<uintptr_t>(a.data) % 256, 0u);
    CHECK_EQ(reinterpret_cast<uintptr_t>(b.data) % 256, 0u);
    CHECK_EQ(before - free_memory(), size_t{256 + 512});
    CHECK_EQ(musaSetDevice(1), musaSuccess);
    const size_t other = free_memory();
    CHECK_EQ(musaSetDevice(0), musaSuccess);
    CHECK_EQ(other, before);
  }
  CHECK_EQ(free_memory(), before);
}

TEST(fresh_memory_is_not_zero) {
  Buffer buffer(kBytes);
  float value = 0;
  CHECK_EQ(musaMemcpy(&value, buffer.data, sizeof(value), musaMemcpyDeviceToHost), musaSuccess);
  CHECK(std::isnan(value));
}

TEST(malloc_of_nothing) {
  void* pointer = &pointer;
  CHECK_EQ(musaMalloc(&pointer, 0), musaSuccess);
  CHECK(pointer == nullptr);
  CHECK_EQ(musaFree(nullptr), musaSuccess);
}

TEST_WITH_ENV(out_of_memory, "TORCH_MUSA_HOST_MEMORY=64") {
  constexpr size_t kMiB = 1 << 20;
  size_t free = 0;
  size_t total = 0;
  CHECK_EQ(musaMemGetInfo(&free, &total), musaSuccess);
  CHECK_EQ(total, 64 * kMiB);
  Buffer most(60 * kMiB);
  void* pointer = &pointer;
  CHECK_EQ(musaMalloc(&pointer, 5 * kMiB), musaErrorMemoryAllocation);
  CHECK(pointer == nullptr);
  CHECK_EQ(musaGetLastError(), musaErrorMemoryAllocation);
  CHECK_EQ(musaMalloc(&pointer, SIZE_MAX), musaErrorMemoryAllocation);
  CHECK_EQ(musaMalloc(&pointer, SIZE_MAX - 1000), musaErrorMemoryAllocation);
  CHECK_EQ(musaMalloc(&pointer, 4 * kMiB), musaSuccess);  // still usable, to the last byte
  CHECK_EQ(musaFree(pointer), musaSuccess);
  Buffer elsewhere(60 * kMiB, 1);
}

TEST(free_of_what_is_not_ours) {
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, kBytes), musaSuccess);
  CHECK_EQ(musaFree(static_cast<char*>(pointer) + 8), musaErrorInvalidValue);
  CHECK_EQ(musaFree(pointer), musaSuccess);
  CHECK_EQ(musaFree(pointer), musaErrorInvalidValue);
  int local = 0;
  CHECK_EQ(musaFree(&local), musaErrorInvalidValue);
  CHECK_EQ(musaFreeHost(&local), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(pinned_memory) {
  void* pinned = nullptr;
  CHECK_EQ(musaMallocHost(&pinned, kBytes), musaSuccess);
  std::memset(pinned, 1, kBytes);
  musaPointerAttributes attributes;
  CHECK_EQ(musaPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 10), musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeHost);
  CHECK(attributes.hostPointer == attributes.devicePointer);
  CHECK_EQ(musaFree(pinned), musaErrorInvalidValue);
  void* device_side = nullptr;
  CHECK_EQ(musaHostGetDevicePointer(&device_side, pinned, 0), musaSuccess);
  CHECK(device_side == pinned);
  CHECK_EQ(musaFreeHost(pinned), musaSuccess);
  CHECK_EQ(musaFreeHost(pinned), musaErrorInvalidValue);
  CHECK_EQ(musaHostAlloc(&pinned, kBytes, 0x80), musaErrorInvalidValue);
  CHECK_EQ(musaHostAlloc(&pinned, kBytes, musaHostAllocPortable), musaSuccess);
  CHECK_EQ(musaFreeHost(pinned), musaSuccess);
  (void)musaGetLastError();
}

TEST(host_registration) {
  std::vector<char> memory(4096);
  CHECK_EQ(musaHostUnregister(memory.data()), musaErrorHostMemoryNotRegistered);
  CHECK_EQ(musaHostRegister(memory.data(), memory.size(), musaHostRegisterDefault), musaSuccess);
  CHECK_EQ(musaHostRegister(memory.data() + 100, 10, 0), musaErrorHostMemoryAlreadyRegistered);
  CHECK(musa::host::device_accessible(memory.data(), memory.size(), 0));
  CHECK_EQ(musaFreeHost(memory.data()), musaErrorInvalidValue);
  CHECK_EQ(musaHostUnregister(memory.data() + 1), musaErrorHostMemoryNotRegistered);
  CHECK_EQ(musaHostUnregister(memory.data()), musaSuccess);
  CHECK(!musa::host::device_accessible(memory.data(), memory.size(), 0));
  CHECK_EQ(musaHostRegister(nullptr, 10, 0), musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(pointer_attributes) {
  Buffer buffer(kBytes, 1);
  musaPointerAttributes attributes;
  CHECK_EQ(musaPointerGetAttributes(&attributes, static_cast<char*>(buffer.data) + 5), musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeDevice);
  CHECK_EQ(attributes.device, 1);
  CHECK(attributes.hostPointer == nullptr);
  int local = 0;
  CHECK_EQ(musaPointerGetAttributes(&attributes, &local), musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeUnregistered);
  CHECK_EQ(attributes.device, musaInvalidDeviceId);
  CHECK(attributes.devicePointer == nullptr && attributes.hostPointer == &local);
}

TEST(a_block_ends_where_it_was_asked_to) {
  Buffer buffer(512);
  CHECK(musa::host::device_accessible(buffer.data, 512, 0));
  CHECK(!musa::host::device_accessible(buffer.data, 513, 0));
  CHECK(musa::host::device_accessible(static_cast<char*>(buffer.data) + 511, 1, 0));
}

// ---- copies
// --------------------------------------------------------------------------------------

TEST(copies_in_all_directions) {
  const std::vector<char> source = pattern(kBytes);
  std::vector<char> back(kBytes);
  Buffer a(kBytes);
  Buffer b(kBytes);
  Buffer remote(kBytes, 1);
  CHECK_EQ(musaMemcpy(a.data, source.data(), kBytes, musaMemcpyHostToDevice), musaSuccess);
  CHECK_EQ(musaMemcpy(b.data, a.data, kBytes, musaMemcpyDeviceToDevice), musaSuccess);
  CHECK_EQ(musaMemcpyPeerAsync(remote.data, 1, b.data, 0, kBytes, nullptr), musaSuccess);
  CHECK_EQ(musaMemcpy(back.data(), remote.data, kBytes, musaMemcpyDeviceToHost), musaSuccess);
  CHECK(back == source);
  std::vector<char> host(kBytes);
  CHECK_EQ(musaMemcpy(host.data(), source.data(), kBytes, musaMemcpyHostToHost), musaSuccess);
  CHECK(host == source);
  std::fill(back.begin(), back.end(), 0);
  CHECK_EQ(musaMemcpyAsync(back.data(), remote.data, kBytes, musaMemcpyDefault, nullptr),
           musaSuccess);
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK(back == source);
}

TEST(copy_in_the_wrong_direction) {
  std::vector<char> host(kBytes);
  Buffer device(kBytes);
  for (auto kind : {musaMemcpyHostToHost, musaMemcpyDeviceToHost, musaMemcpyDeviceToDevice}) {
    CHECK_EQ(musaMemcpy(device.data, host.data(), kBytes, kind), musaErrorInvalidValue);
  }
  for (auto kind : {musaMemcpyHostToHost, musaMemcpyHostToDevice, musaMemcpyDeviceToDevice}) {
    CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, kind), musaErrorInvalidValue);
  }
  CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, static_cast<musaMemcpyKind>(7)),
           musaErrorInvalidMemcpyDirection);
  CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, musaMemcpyDeviceToHost), musaSuccess);
  (void)musaGetLastError();
}

TEST(copy_past_the_end) {
  std::vector<char> host(2048);
  Buffer device(512);
  CHECK_EQ(musaMemcpy(device.data, host.data(), 513, musaMemcpyHostToDevice),
           musaErrorInvalidValue);
  CHECK_EQ(musaMemset(static_cast<char*>(device.data) + 500, 0, 13), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpy(nullptr, device.data, 8, musaMemcpyDeviceToHost), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpy(nullptr, nullptr, 0, musaMemcpyHostToDevice), musaSuccess);
  (void)musaGetLastError();
}

TEST(copy_between_peers_checks_the_devices) {
  Buffer here(kBytes, 0);
  Buffer there(kBytes, 1);
  CHECK_EQ(musaMemcpyPeer(there.data, 0, here.data, 0, kBytes), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpyPeer(there.data, 7, here.data, 0, kBytes), musaErrorInvalidDevice);
  CHECK_EQ(musaMemcpyPeer(there.data, 1, here.data, 0, kBytes), musaSuccess);
  (void)musaGetLastError();
}

TEST(memset) {
  Buffer device(kBytes);
  CHECK_EQ(musaMemset(device.data, 0x5a, kBytes), musaSuccess);
  CHECK_EQ(musaMemsetAsync(device.data, 0, 10, nullptr), musaSuccess);
  std::vector<unsigned char> back(kBytes);
  CHECK_EQ(musaMemcpy(back.data(), device.data, kBytes, musaMemcpyDeviceToHost), musaSuccess);
  CHECK(back[0] == 0 && back[9] == 0 && back[10] == 0x5a && back[kBytes - 1] == 0x5a);
  char local[8];
  CHECK_EQ(musaMemset(local, 0, sizeof(local)), musaErrorInvalidValue);
  (void)musaGetLastError();
}

// ---- streams and events
// --------------------------------------------------------------------------

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

// ---- errors
// --------------------------------------------------------------------------------------

TEST(last_error) {
  (void)musaGetLastError();
  CHECK_EQ(musaSetDevice(50), musaErrorInvalidDevice);
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);  // a success does not clear it
  CHECK_EQ(musaPeekAtLastError(), musaErrorInvalidDevice);
  musaError_t elsewhere = musaErrorUnknown;
  std::thread([&] { elsewhere = musaGetLastError(); }).join();
  CHECK_EQ(elsewhere, musaSuccess);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidDevice);
  CHECK_EQ(musaGetLastError(), musaSuccess);
}

TEST_WITH_ENV(sticky_error, "TORCH_MUSA_HOST_DEVICES=2") {
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  musa::host::set_sticky_error(musaErrorAssert);  // the first one stays
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, 8), musaErrorIllegalAddress);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
  CHECK_EQ(musaDeviceSynchronize(), musaErrorIllegalAddress);
}

TEST(error_names) {
  CHECK_EQ(std::string(musaGetErrorName(musaErrorMemoryAllocation)),
           std::string("musaErrorMemoryAllocation"));
  CHECK_EQ(std::string(musaGetErrorString(musaErrorMemoryAllocation)),
           std::string("out of memory"));
  CHECK_EQ(std::string(musaGetErrorString(static_cast<musaError_t>(12345))),
           std::string("unrecognized error code"));
}

TEST(null_arguments) {
  CHECK_EQ(musaGetDeviceCount(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaGetDevice(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaMalloc(nullptr, 8), musaErrorInvalidValue);
  CHECK_EQ(musaStreamCreate(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaEventCreate(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaMemGetInfo(nullptr, nullptr), musaErrorInvalidValue);
  (void)musaGetLastError();
}

// ---- the pool
// ------------------------------------------------------------------------------------

TEST(parallel_for_covers_every_index_once) {
  for (int64_t count : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{100003}}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    musa::host::parallel_for(5, 5 + count, 10, [&](int64_t begin, int64_t end) {
      CHECK(begin < end);
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i - 5)];
    });
    for (const auto& hit : hits) CHECK_EQ(hit.load(), 1);
  }
  musa::host::parallel_for(3, 3, 1, [](int64_t, int64_t) { CHECK(false); });
}

TEST(parallel_for_nests_and_throws) {
  std::atomic<int> sum{0};
  musa::host::parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      musa::host::parallel_for(0, 10, 1,
                               [&](int64_t b, int64_t e) { sum += static_cast<int>(e - b); });
    }
  });
  CHECK_EQ(sum.load(), 640);
  bool thrown = false;
  try {
    musa::host::parallel_for(0, 1000, 1, [](int64_t begin, int64_t) {
      if (begin == 0) throw std::runtime_error("first");
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
}

#ifndef __SANITIZE_THREAD__  // which refuses threads in the child of a threaded process
TEST(parallel_for_survives_a_fork) {
  std::atomic<int64_t> count{0};
  const auto body = [&](int64_t begin, int64_t end) { count += end - begin; };
  musa::host::parallel_for(0, 1000, 1, body);
  const pid_t child = fork();
  if (child == 0) {
    count = 0;
    musa::host::parallel_for(0, 1000, 1, body);
    _exit(count == 1000 ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(threads_allocate_and_free) {
  const size_t before = free_memory();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<void*> held;
      for (int i = 0; i < 500; ++i) {
        void* pointer = nullptr;
        if (musaMalloc(&pointer, static_cast<size_t>(i % 37 + 1) * 64) != musaSuccess) ++failures;
        held.push_back(pointer);
        if (i % 3 == t % 3) {
          if (musaFree(held.back()) != musaSuccess) ++failures;
          held.pop_back();
        }
      }
      for (void* pointer : held) {
        if (musaFree(pointer) != musaSuccess) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failures.load(), 0);
  CHECK_EQ(free_memory(), before);
}
