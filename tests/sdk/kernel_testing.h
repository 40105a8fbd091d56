// What tests of kernels share: memory to and from the device, cases for each warp size, and what a
// failing kernel says.
#pragma once

#include <fcntl.h>
#include <musa_runtime.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"

// A case that runs in processes of its own with warps of 128 and of 32 lanes.
#define PROFILE_TEST(name)                                                                         \
  static void name();                                                                              \
  static const check::Registrar registrar_##name##_mp_22{#name "_mp_22", name, "MUSA_ARCH=mp_22"}; \
  static const check::Registrar registrar_##name##_mp_31{#name "_mp_31", name, "MUSA_ARCH=mp_31"}; \
  static void name()

// A case whose kernel fails: the device stays broken, so it has a process of its own.
#define FAULT_TEST(name) CHECK_DEFINE(name, "MUSA_ARCH=mp_31")

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(size_t count) : count_(count) {
    CHECK_EQ(musaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), musaSuccess);
    CHECK_EQ(musaMemset(data_, 0, count * sizeof(T)), musaSuccess);
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    CHECK_EQ(musaMemcpy(data_, values.data(), count_ * sizeof(T), musaMemcpyHostToDevice),
             musaSuccess);
  }
  ~OnDevice() { (void)musaFree(data_); }
  OnDevice(const OnDevice&) = delete;

  operator T*() const { return data_; }
  T* get() const { return data_; }
  size_t size() const { return count_; }

  std::vector<T> values() const {
    std::vector<T> result(count_);
    CHECK_EQ(musaGetLastError(), musaSuccess);
    CHECK_EQ(musaMemcpy(result.data(), data_, count_ * sizeof(T), musaMemcpyDeviceToHost),
             musaSuccess);
    return result;
  }
  T value() const { return values().at(0); }

 private:
  T* data_ = nullptr;
  size_t count_;
};

// Reproducible numbers in [-1, 1).
inline std::vector<float> some_floats(size_t count, unsigned int seed = 1) {
  std::vector<float> result(count);
  unsigned int state = seed * 2654435761u + 1;
  for (float& value : result) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return result;
}

// What goes to stderr while `body` runs.
template <typename Body>
std::string stderr_of(Body&& body) {
  std::fflush(stderr);
  char path[] = "/tmp/musa-kernel-test-XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  const int kept = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  body();
  (void)musaDeviceSynchronize();  // streams may have threads of their own
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::string text(static_cast<size_t>(lseek(file, 0, SEEK_END)), '\0');
  lseek(file, 0, SEEK_SET);
  const ssize_t got = read(file, text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  close(file);
  return text;
}

#define CHECK_CONTAINS(text, part)                                                       \
  do {                                                                                   \
    if ((text).find(part) == std::string::npos) {                                        \
      check::fail(__FILE__, __LINE__, std::string("no '") + (part) + "' in: " + (text)); \
    }                                                                                    \
  } while (false)

#define CHECK_NEAR(actual, expected, tolerance)                                              \
  do {                                                                                       \
    const double near_a = (actual);                                                          \
    const double near_e = (expected);                                                        \
    if (!(std::fabs(near_a - near_e) <= (tolerance))) {                                      \
      check::fail(__FILE__, __LINE__,                                                        \
                  std::string(#actual) + ": got " + std::to_string(near_a) + ", expected " + \
                      std::to_string(near_e));                                               \
    }                                                                                        \
  } while (false)
