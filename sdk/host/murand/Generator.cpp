// muRAND's host interface. Numbers are a function of seed and position, so pieces of an array may
// be made by any thread.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <stdexcept>
#include <unordered_set>

#include "murand.h"
#include "murand_normal.h"
#include "musa_host.h"

struct murandGenerator {
  int device = 0;
  musaStream_t stream = nullptr;
  unsigned long long seed = 0;
  unsigned long long offset = 0;  // words of the stream that are gone
};

namespace {

using musa::rand::philox_block;
using musa::rand::Words4;

constexpr int64_t kBlocksPerPiece = 4096;  // of four words

constexpr double kLargestLambda = 400000;  // cuRAND's documentation of curandGeneratePoisson

// Handles that are alive: a stale one is an error to report, not memory to touch.
std::mutex live_mutex;
std::unordered_set<murandGenerator_t>& live() {
  static auto* generators = new std::unordered_set<murandGenerator_t>;
  return *generators;
}

bool is_live(murandGenerator_t generator) {
  const std::lock_guard lock(live_mutex);
  return live().count(generator) != 0;
}

// Element e of `out` comes from words [e * words, (e + 1) * words) behind the generator's offset;
// elements are made in groups, of the words of group g. `group` elements take `words_per_group`.
template <typename T, typename Make>
murandStatus_t generate(murandGenerator_t generator, T* out, size_t n, size_t group,
                        size_t words_per_group, Make make) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  if (n % group != 0) return MURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (n == 0) return MURAND_STATUS_SUCCESS;
  if (n > SIZE_MAX / sizeof(T) ||
      !musa::host::device_accessible(out, n * sizeof(T), generator->device)) {
    return MURAND_STATUS_OUT_OF_RANGE;
  }
  const unsigned long long seed = generator->seed;
  const unsigned long long first = generator->offset;
  const auto groups = static_cast<int64_t>(n / group);
  try {
    const musaError_t refused = musa::host::try_enqueue(generator->device, generator->stream, [=] {
      const auto grain = static_cast<int64_t>(kBlocksPerPiece * 4 / words_per_group);
      musa::host::parallel_for(0, groups, grain, [=](int64_t begin, int64_t end) {
        // A small window over the stream: the block that the last word came from.
        uint64_t known = ~uint64_t{0};
        uint32_t words[4] = {};
        uint64_t position = first + static_cast<uint64_t>(begin) * words_per_group;
        const auto next = [&] {
          if (position / 4 != known) {
            known = position / 4;
            const Words4 w = philox_block(seed, 0, known);
            words[0] = w.x;
            words[1] = w.y;
            words[2] = w.z;
            words[3] = w.w;
          }
          return words[position++ % 4];
        };
        for (int64_t g = begin; g < end; ++g) {
          make(next, out + static_cast<size_t>(g) * group);
        }
      });
    });
    // The stream is not alive, or an earlier error sticks.
    if (refused != musaSuccess) return MURAND_STATUS_LAUNCH_FAILURE;
  } catch (const std::exception&) {
    return MURAND_STATUS_INTERNAL_ERROR;
  }
  generator->offset += static_cast<unsigned long long>(groups) * words_per_group;
  return MURAND_STATUS_SUCCESS;
}

Words4 four(const auto& next) {
  const uint32_t x = next();
  const uint32_t y = next();
  const uint32_t z = next();
  return {x, y, z, next()};
}

template <typename Finish>
murandStatus_t generate_normal(murandGenerator_t generator, float* out, size_t n, Finish finish) {
  return generate(generator, out, n, 2, 2, [finish](const auto& next, float* two) {
    const uint32_t a = next();
    const auto values = musa::rand::normal(a, next());
    two[0] = finish(values.x);
    two[1] = finish(values.y);
  });
}

template <typename Finish>
murandStatus_t generate_normal(murandGenerator_t generator, double* out, size_t n, Finish finish) {
  return generate(generator, out, n, 2, 4, [finish](const auto& next, double* two) {
    const auto values = musa::rand::normal_double(four(next));
    two[0] = finish(values.x);
    two[1] = finish(values.y);
  });
}

}  // namespace

murandStatus_t murandCreateGenerator(murandGenerator_t* generator, murandRngType_t type) {
  if (generator == nullptr) return MURAND_STATUS_OUT_OF_RANGE;
  switch (type) {
    case MURAND_RNG_PSEUDO_DEFAULT:
    case MURAND_RNG_PSEUDO_XORWOW:
    case MURAND_RNG_PSEUDO_MRG32K3A:
    case MURAND_RNG_PSEUDO_MTGP32:
    case MURAND_RNG_PSEUDO_PHILOX4_32_10:
      break;
    default:
      return MURAND_STATUS_TYPE_ERROR;
  }
  auto* made = new (std::nothrow) murandGenerator;
  if (made == nullptr) return MURAND_STATUS_ALLOCATION_FAILED;
  if (musaGetDevice(&made->device) != musaSuccess) {
    delete made;
    return MURAND_STATUS_INTERNAL_ERROR;
  }
  const std::lock_guard lock(live_mutex);
  live().insert(made);
  *generator = made;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandDestroyGenerator(murandGenerator_t generator) {
  {
    const std::lock_guard lock(live_mutex);
    if (live().erase(generator) == 0) return MURAND_STATUS_NOT_CREATED;
  }
  delete generator;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandGetVersion(int* version) {
  if (version == nullptr) return MURAND_STATUS_OUT_OF_RANGE;
  *version = MURAND_VERSION;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetStream(murandGenerator_t generator, musaStream_t stream) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  generator->stream = stream;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetPseudoRandomGeneratorSeed(murandGenerator_t generator,
                                                  unsigned long long seed) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  generator->seed = seed;
  generator->offset = 0;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetGeneratorOffset(murandGenerator_t generator, unsigned long long offset) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  generator->offset = offset;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandGenerate(murandGenerator_t generator, unsigned int* out, size_t n) {
  return generate(generator, out, n, 1, 1,
                  [](const auto& next, unsigned int* value) { *value = next(); });
}

murandStatus_t murandGenerateLongLong(murandGenerator_t generator, unsigned long long*, size_t) {
  return is_live(generator) ? MURAND_STATUS_TYPE_ERROR : MURAND_STATUS_NOT_CREATED;
}

murandStatus_t murandGenerateUniform(murandGenerator_t generator, float* out, size_t n) {
  return generate(generator, out, n, 1, 1,
                  [](const auto& next, float* value) { *value = musa::rand::uniform(next()); });
}

murandStatus_t murandGenerateUniformDouble(murandGenerator_t generator, double* out, size_t n) {
  return generate(generator, out, n, 1, 2, [](const auto& next, double* value) {
    const uint32_t low = next();
    *value = musa::rand::uniform_double(low, next());
  });
}

murandStatus_t murandGenerateNormal(murandGenerator_t generator, float* out, size_t n, float mean,
                                    float stddev) {
  return generate_normal(generator, out, n, [=](float x) { return mean + stddev * x; });
}

murandStatus_t murandGenerateNormalDouble(murandGenerator_t generator, double* out, size_t n,
                                          double mean, double stddev) {
  return generate_normal(generator, out, n, [=](double x) { return mean + stddev * x; });
}

murandStatus_t murandGenerateLogNormal(murandGenerator_t generator, float* out, size_t n,
                                       float mean, float stddev) {
  return generate_normal(generator, out, n, [=](float x) { return std::exp(mean + stddev * x); });
}

murandStatus_t murandGenerateLogNormalDouble(murandGenerator_t generator, double* out, size_t n,
                                             double mean, double stddev) {
  return generate_normal(generator, out, n, [=](double x) { return std::exp(mean + stddev * x); });
}

murandStatus_t murandGeneratePoisson(murandGenerator_t generator, unsigned int* out, size_t n,
                                     double lambda) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  if (!(lambda > 0 && lambda <= kLargestLambda)) return MURAND_STATUS_OUT_OF_RANGE;
  const unsigned long long seed = generator->seed;
  const unsigned long long first = generator->offset;
  // How many words a number takes is not known beforehand: each has a subsequence of its own, and
  // subsequence 0 is the other calls'.
  return generate(generator, out, n, 1, 1,
                  [seed, first, lambda, out](const auto& next, unsigned int* value) {
                    (void)next;
                    const uint64_t subsequence = 1 + first + static_cast<uint64_t>(value - out);
                    uint64_t block = 0;
                    int half = 1;
                    Words4 words{};
                    *value = musa::rand::poisson(lambda, [&] {
                      half ^= 1;
                      if (half == 0) words = philox_block(seed, subsequence, block++);
                      return half == 0 ? musa::rand::uniform_double(words.x, words.y)
                                       : musa::rand::uniform_double(words.z, words.w);
                    });
                  });
}
