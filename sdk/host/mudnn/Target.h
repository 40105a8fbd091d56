// Where muDNN's stand-in computes, and how its work comes to the stream: what sdk/mudnn asks of a
// target, and the one place (with Draw.cpp) that differs between them. Here: the CPU.
#pragma once

#include <c10/core/Device.h>

#include <functional>

#include "musa_host.h"

namespace musa::dnn::internal::target {

// Whether the thread that makes a call can read operands by itself, in work run by run().
constexpr bool kHostComputes = true;

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

inline void enqueue(int device, musaStream_t stream, std::function<void()> work, const char* name) {
  host::enqueue(device, stream, std::move(work), name);
}

inline void synchronize(int device, musaStream_t stream) { host::synchronize(device, stream); }

}  // namespace musa::dnn::internal::target
