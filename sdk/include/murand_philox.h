// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011): four words out of a counter of 128 bits and a key of 64,
// by ten rounds. Constants: table 2 and section 4.3 there. Without state between blocks of four
// words, the numbers cannot depend on how many threads make them.
#pragma once

#include <cstdint>

namespace musa::rand {

struct Words4 {
  uint32_t x, y, z, w;
};

#if defined(__MUSACC__) || defined(__MUSA__) || defined(__CUDACC__)
#define MURAND_FUNCTION __host__ __device__ inline
#else
#define MURAND_FUNCTION inline
#endif

MURAND_FUNCTION Words4 philox_round(Words4 counter, uint32_t key0, uint32_t key1) {
  const uint64_t product0 = static_cast<uint64_t>(0xD2511F53u) * counter.x;
  const uint64_t product1 = static_cast<uint64_t>(0xCD9E8D57u) * counter.z;
  return {static_cast<uint32_t>(product1 >> 32) ^ counter.y ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ counter.w ^ key1,
          static_cast<uint32_t>(product0)};
}

// Ten rounds for each of n counters, under one key.
template <int n>
MURAND_FUNCTION void philox_rounds(Words4 (&counters)[n], uint32_t key0, uint32_t key1) {
  constexpr uint32_t kWeyl0 = 0x9E3779B9u;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85u;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    for (Words4& counter : counters) counter = philox_round(counter, key0, key1);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

MURAND_FUNCTION Words4 philox4x32_10(Words4 counter, uint32_t key0, uint32_t key1) {
  Words4 counters[] = {counter};
  philox_rounds(counters, key0, key1);
  return counters[0];
}

// Words [4 * block, 4 * block + 4) of n subsequences of a seed's stream, from the given one on.
template <int n>
MURAND_FUNCTION void philox_blocks(uint64_t seed, uint64_t subsequence, uint64_t block,
                                   Words4 (&words)[n]) {
  for (Words4& w : words) {
    w = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
         static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)};
    ++subsequence;
  }
  philox_rounds(words, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

MURAND_FUNCTION Words4 philox_block(uint64_t seed, uint64_t subsequence, uint64_t block) {
  Words4 words[1];
  philox_blocks(seed, subsequence, block, words);
  return words[0];
}

// ---- from words to distributions
// -----------------------------------------------------------------

// Uniform in (0, 1]: never 0, so that a logarithm is finite, and 1 after rounding.
MURAND_FUNCTION float uniform(uint32_t word) {
  return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}
MURAND_FUNCTION double uniform_double(uint32_t low, uint32_t high) {
  const uint64_t word = (static_cast<uint64_t>(high) << 32) | low;
  return static_cast<double>(word >> 11) * 0x1p-53 + 0x1p-53;
}

}  // namespace musa::rand
