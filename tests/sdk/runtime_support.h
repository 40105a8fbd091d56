// What the runtime's test binaries share.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "check.h"
#include "musa_host.h"
#include "musa_runtime.h"

namespace {

constexpr size_t kBytes = 1000;
constexpr size_t kMiB = size_t{1} << 20;

#define CHECK_OK(call) CHECK_EQ((call), musaSuccess)

// A device allocation that ends with its scope.
struct Buffer {
  explicit Buffer(size_t bytes, int device = 0) {
    CHECK_OK(musaSetDevice(device));
    CHECK_OK(musaMalloc(&data, bytes));
    CHECK_OK(musaSetDevice(0));
  }
  ~Buffer() { (void)musaFree(data); }
  Buffer(const Buffer&) = delete;
  void* data = nullptr;
};

struct Stream {
  explicit Stream(unsigned int flags = musaStreamDefault) {
    CHECK_OK(musaStreamCreateWithFlags(&handle, flags));
  }
  ~Stream() { (void)musaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  operator musaStream_t() const { return handle; }
  musaStream_t handle = nullptr;
};

struct Event {
  explicit Event(unsigned int flags = musaEventDefault) {
    CHECK_OK(musaEventCreateWithFlags(&handle, flags));
  }
  ~Event() { (void)musaEventDestroy(handle); }
  Event(const Event&) = delete;
  operator musaEvent_t() const { return handle; }
  musaEvent_t handle = nullptr;
};

[[maybe_unused]] size_t free_memory() {
  size_t free = 0;
  size_t total = 0;
  CHECK_OK(musaMemGetInfo(&free, &total));
  CHECK(free <= total);
  return free;
}

[[maybe_unused]] std::vector<char> pattern(size_t bytes) {
  std::vector<char> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7 + 1);
  return data;
}

}  // namespace
