// Where muDNN's stand-in computes, and how its work comes to the stream: what sdk/mudnn asks of a
// target, and the one place (with Draw.cpp) that differs between them. Here: the CPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

#include <functional>

#include "DirectCalls.h"
#include "musa_host.h"

namespace musa::dnn::internal::target {

inline at::Device device(int /*musa_device*/) { return at::Device(at::kCPU); }

// Whether a kernel on the device may touch all of [pointer, pointer + bytes).
inline bool accessible(const void* pointer, size_t bytes, int device) {
  return host::device_accessible(pointer, bytes, device);
}

// Lives while a call is checked and runs.
struct OnStream {
  OnStream(int /*device*/, musaStream_t /*stream*/) {}
};

// Runs body(argument) in the order of the stream before returning; false, and nothing done, where
// work has to wait for its turn: then enqueue.
inline bool run(int device, musaStream_t stream, void (*body)(void*), void* argument,
                const char* name) {
  return host::run_now(device, stream, body, argument, name);
}

template <class Body>
bool run(int device, musaStream_t stream, Body body, const char* name) {
  return run(device, stream, [](void* b) { (*static_cast<Body*>(b))(); }, &body, name);
}

// The same for a few elements: plain loops.
inline bool map(int device, musaStream_t stream, const DirectMap& m, const char* name) {
  const auto loop = [&m]<DirectFunction function>() {
    for (int64_t i = 0; i < m.n; ++i) {
      m.out[i] = direct<function>(m.a[i], m.b == nullptr ? m.number : m.b[i]);
    }
  };
  return run(device, stream, [&] { with_direct(m.function, loop); }, name);
}

inline bool sum(int device, musaStream_t stream, const DirectSum& s, const char* name) {
  const auto loop = [&s] {
    double sum = 0;
    for (int64_t i = 0; i < s.n; ++i) sum += s.a[i];
    *s.out = static_cast<float>(s.mean ? sum / static_cast<double>(s.n) : sum);
  };
  return run(device, stream, loop, name);
}

// Products are ATen's.
constexpr bool kHasProduct = false;
inline bool product(int /*device*/, musaStream_t /*stream*/, const DirectProduct& /*p*/) {
  return false;
}

inline void enqueue(int device, musaStream_t stream, std::function<void()> work, const char* name) {
  host::enqueue(device, stream, std::move(work), name);
}

// Whether operators are lent the memory of their results (sdk/mudnn/Results.h): on the host a copy
// costs little beside them.
inline constexpr bool kLends = false;
inline void lend(at::TensorList /*places*/, c10::function_ref<void()> body) { body(); }
inline void stop_lending() {}

inline void synchronize(int device, musaStream_t stream) { host::synchronize(device, stream); }

}  // namespace musa::dnn::internal::target
