// Which elements dropout keeps, and what becomes of them. The numbers are a function of seed and
// offset alone, on every target; how they are made is the target's (Draw.cpp, Draw.cu).
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace musa::dnn::internal {

// A number that the caller gave, or one that is in device memory by the time the work runs.
struct Word {
  uint64_t value = 0;
  at::Tensor device = {};  // INT64, one element; undefined unless it is there
};

// Random words come in blocks of four, which serve as many elements; offsets count words.
constexpr int64_t kWordsPerBlock = 4;

// The first word that keeps an element which is dropped with probability p, in [0, 1): p to
// multiples of 2^-32, upwards, but the last word always keeps.
inline uint32_t first_kept(double p) {
  return static_cast<uint32_t>(std::min(std::ceil(p * 0x1p32), 0x1p32 - 1));
}

// kept[i] = true with probability 1 - p: element i of `kept` (BOOL, contiguous) asks word i % 4 of
// Philox subsequence i / 4, block offset / 4. A device seed replaces the value, a device offset is
// added to it.
void draw(const at::Tensor& kept, double p, const Word& seed, const Word& offset);

// Draws `kept`, and out = in * kept * (1 / (1 - p)). All are dense and alike in shape; out may be
// in, but overlaps nothing otherwise. Half types compute in float and round once; what is dropped
// is multiplied by 0, so NaN and infinity become NaN.
void drop(const at::Tensor& out, const at::Tensor& in, const at::Tensor& kept, double p,
          const Word& seed, const Word& offset);

// out = in * kept * scale, under the same rules.
void scale_kept(const at::Tensor& out, const at::Tensor& in, const at::Tensor& kept, double scale);

}  // namespace musa::dnn::internal
