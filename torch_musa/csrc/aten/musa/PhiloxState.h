#pragma once

#include <c10/macros/Macros.h>

#include <cstdint>

namespace at::musa {

/// What a kernel needs to draw: element i of the launch takes the Philox subsequence i of the seed
/// from the offset on.
///
/// While a graph is captured neither number is known: each replay goes on where the generator then
/// stands. The graph keeps both in device memory, where replays write them, and a kernel adds how
/// much the graph drew before it. Kernels take the whole state and ask `seed_now` and `offset_now`
/// on the device; host code asks is_captured() first.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
  const uint64_t* words = nullptr;  // on the device: seed, offset. Null outside a capture.

  bool is_captured() const { return words != nullptr; }
  const uint64_t* device_seed() const { return words; }
  const uint64_t* device_offset() const { return words + 1; }

  C10_HOST_DEVICE uint64_t seed_now() const { return words == nullptr ? seed : words[0]; }
  C10_HOST_DEVICE uint64_t offset_now() const {
    return words == nullptr ? offset : words[1] + offset;
  }
};

}  // namespace at::musa
