// Random numbers inside kernels: each thread has a state of its own. The generator is
// Philox4x32-10; the names and what offsets count (words of 32 bits) are cuRAND's.
//
//   murandStatePhilox4_32_10_t state;
//   murand_init(seed, subsequence, offset, &state);    typically subsequence = the thread's number
//   float u = murand_uniform(&state);                  in (0, 1]
#pragma once

#include "murand_normal.h"
#include "musa_vector_types.h"

struct murandStatePhilox4_32_10 {
  unsigned long long seed;
  unsigned long long subsequence;
  unsigned long long block;  // whose words `words` are
  uint4 words;
  unsigned int used;  // of the four
  int has_normal;     // the second of a pair waits in `normal`
  int has_normal_double;
  float normal;
  double normal_double;
};
using murandStatePhilox4_32_10_t = murandStatePhilox4_32_10;
// The toolkit's default state holds another generator, whose numbers nobody can depend on; here it
// is this one.
using murandState = murandStatePhilox4_32_10;
using murandState_t = murandStatePhilox4_32_10;

namespace musa::rand {

MURAND_FUNCTION void load_block(murandStatePhilox4_32_10* state) {
  const Words4 w = philox_block(state->seed, state->subsequence, state->block);
  state->words = {w.x, w.y, w.z, w.w};
}

}  // namespace musa::rand

// Goes n words further.
MURAND_FUNCTION void skipahead(unsigned long long n, murandStatePhilox4_32_10* state) {
  const unsigned long long position = state->used + n % 4;
  state->block += n / 4 + position / 4;
  state->used = static_cast<unsigned int>(position % 4);
  ::musa::rand::load_block(state);
}

MURAND_FUNCTION void skipahead_sequence(unsigned long long n, murandStatePhilox4_32_10* state) {
  state->subsequence += n;
  ::musa::rand::load_block(state);
}

MURAND_FUNCTION void murand_init(unsigned long long seed, unsigned long long subsequence,
                                 unsigned long long offset, murandStatePhilox4_32_10* state) {
  *state = {seed, subsequence, offset / 4, {0, 0, 0, 0}, static_cast<unsigned int>(offset % 4),
            0,    0,           0.0f,       0.0};
  ::musa::rand::load_block(state);
}

// The next word.
MURAND_FUNCTION unsigned int murand(murandStatePhilox4_32_10* state) {
  const unsigned int words[] = {state->words.x, state->words.y, state->words.z, state->words.w};
  const unsigned int word = words[state->used];
  if (++state->used == 4) {
    state->used = 0;
    ++state->block;
    ::musa::rand::load_block(state);
  }
  return word;
}

// The next four words.
MURAND_FUNCTION uint4 murand4(murandStatePhilox4_32_10* state) {
  if (state->used == 0) {
    const uint4 words = state->words;
    ++state->block;
    ::musa::rand::load_block(state);
    return words;
  }
  const unsigned int x = murand(state);
  const unsigned int y = murand(state);
  const unsigned int z = murand(state);
  return {x, y, z, murand(state)};
}

MURAND_FUNCTION float murand_uniform(murandStatePhilox4_32_10* state) {
  return ::musa::rand::uniform(murand(state));
}
MURAND_FUNCTION float4 murand_uniform4(murandStatePhilox4_32_10* state) {
  const uint4 w = murand4(state);
  return {::musa::rand::uniform(w.x), ::musa::rand::uniform(w.y), ::musa::rand::uniform(w.z),
          ::musa::rand::uniform(w.w)};
}
MURAND_FUNCTION double murand_uniform_double(murandStatePhilox4_32_10* state) {
  const unsigned int low = murand(state);
  return ::musa::rand::uniform_double(low, murand(state));
}
MURAND_FUNCTION double2 murand_uniform2_double(murandStatePhilox4_32_10* state) {
  const uint4 w = murand4(state);
  return {::musa::rand::uniform_double(w.x, w.y), ::musa::rand::uniform_double(w.z, w.w)};
}

MURAND_FUNCTION float2 murand_normal2(murandStatePhilox4_32_10* state) {
  const unsigned int a = murand(state);
  const auto two = ::musa::rand::normal(a, murand(state));
  return {two.x, two.y};
}
MURAND_FUNCTION float4 murand_normal4(murandStatePhilox4_32_10* state) {
  const uint4 w = murand4(state);
  const auto first = ::musa::rand::normal(w.x, w.y);
  const auto second = ::musa::rand::normal(w.z, w.w);
  return {first.x, first.y, second.x, second.y};
}
MURAND_FUNCTION double2 murand_normal2_double(murandStatePhilox4_32_10* state) {
  const uint4 w = murand4(state);
  const auto two = ::musa::rand::normal_double({w.x, w.y, w.z, w.w});
  return {two.x, two.y};
}
// One of a pair now, the other at the next call.
MURAND_FUNCTION float murand_normal(murandStatePhilox4_32_10* state) {
  if (state->has_normal != 0) {
    state->has_normal = 0;
    return state->normal;
  }
  const float2 two = murand_normal2(state);
  state->normal = two.y;
  state->has_normal = 1;
  return two.x;
}
MURAND_FUNCTION double murand_normal_double(murandStatePhilox4_32_10* state) {
  if (state->has_normal_double != 0) {
    state->has_normal_double = 0;
    return state->normal_double;
  }
  const double2 two = murand_normal2_double(state);
  state->normal_double = two.y;
  state->has_normal_double = 1;
  return two.x;
}
MURAND_FUNCTION float murand_log_normal(murandStatePhilox4_32_10* state, float mean, float stddev) {
  return std::exp(mean + stddev * murand_normal(state));
}
MURAND_FUNCTION double murand_log_normal_double(murandStatePhilox4_32_10* state, double mean,
                                                double stddev) {
  return std::exp(mean + stddev * murand_normal_double(state));
}
MURAND_FUNCTION unsigned int murand_poisson(murandStatePhilox4_32_10* state, double lambda) {
  return ::musa::rand::poisson(lambda, [state] { return murand_uniform_double(state); });
}
