// Which elements dropout keeps. The numbers are a function of seed and offset alone, on every
// target; how they are made is the target's (Draw.cpp, Draw.cu).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace musa::dnn::internal {

// A number that the caller gave, or one that is in device memory by the time the work runs.
struct Word {
  uint64_t value = 0;
  at::Tensor device = {};  // INT64, one element; undefined unless it is there
};

// Random words come in blocks of four; offsets count words.
constexpr uint64_t kWordsPerBlock = 4;

// kept[i] = true with probability 1 - p: element i of `kept` (BOOL, contiguous) asks the first word
// of Philox subsequence i. A device seed replaces the value, a device offset is added to it.
void draw(const at::Tensor& kept, double p, const Word& seed, const Word& offset);

}  // namespace musa::dnn::internal
