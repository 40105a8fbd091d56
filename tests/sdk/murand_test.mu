// muRAND: Philox's known answers, what the real library refuses, and numbers that depend on seed and
// position alone.
#include <murand.h>
#include <murand_kernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel_testing.h"

namespace {

class Generator {
 public:
  explicit Generator(unsigned long long seed) {
    CHECK_EQ(murandCreateGenerator(&handle_, MURAND_RNG_PSEUDO_PHILOX4_32_10),
             MURAND_STATUS_SUCCESS);
    CHECK_EQ(murandSetPseudoRandomGeneratorSeed(handle_, seed), MURAND_STATUS_SUCCESS);
  }
  ~Generator() { (void)murandDestroyGenerator(handle_); }
  operator murandGenerator_t() const { return handle_; }

 private:
  murandGenerator_t handle_ = nullptr;
};

// The published vectors of the authors' library Random123 (kat_vectors, philox4x32 10).
TEST(philox_gives_the_known_answers) {
  using musa::rand::philox4x32_10;
  const auto check = [](musa::rand::Words4 got, musa::rand::Words4 expected) {
    CHECK(got.x == expected.x && got.y == expected.y && got.z == expected.z && got.w == expected.w);
  };
  check(philox4x32_10({0, 0, 0, 0}, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  check(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
        {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  check(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
        {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

__global__ void draw_words(unsigned int* out, unsigned long long seed, unsigned long long offset,
                           int words) {
  murandStatePhilox4_32_10_t state;
  murand_init(seed, blockIdx.x * blockDim.x + threadIdx.x, offset, &state);
  for (int i = 0; i < words; ++i) {
    out[(blockIdx.x * blockDim.x + threadIdx.x) * words + i] = murand(&state);
  }
}

TEST(a_kernels_state_begins_where_its_offset_says) {
  const int threads = 64;
  const OnDevice<unsigned int> all(threads * 11);
  draw_words<<<2, 32>>>(all.get(), 42, 0, 11);
  const std::vector<unsigned int> expected = all.values();
  for (int t = 0; t < threads; ++t) {
    for (int i = 0; i < 11; ++i) {
      const auto block = musa::rand::philox_block(42, t, i / 4);
      const unsigned int words[] = {block.x, block.y, block.z, block.w};
      CHECK(expected[t * 11 + i] == words[i % 4]);
    }
  }
  for (const int offset : {1, 3, 4, 7}) {
    const OnDevice<unsigned int> later(threads * 3);
    draw_words<<<1, threads>>>(later.get(), 42, offset, 3);
    const std::vector<unsigned int> got = later.values();
    for (int t = 0; t < threads; ++t) {
      for (int i = 0; i < 3; ++i) CHECK(got[t * 3 + i] == expected[t * 11 + offset + i]);
    }
  }
}

__global__ void skip_and_mix(unsigned int* out) {
  murandStatePhilox4_32_10_t a;
  murandStatePhilox4_32_10_t b;
  murand_init(7, 3, 0, &a);
  murand_init(7, 3, 0, &b);
  skipahead(9, &a);
  for (int i = 0; i < 9; ++i) murand(&b);
  out[0] = murand(&a) == murand(&b);
  const uint4 four = murand4(&a);
  out[1] = four.x == murand(&b) && four.y == murand(&b) && four.z == murand(&b) && four.w == murand(&b);
  murand_init(7, 5, 0, &b);
  murand_init(7, 3, 0, &a);
  skipahead_sequence(2, &a);
  out[2] = murand(&a) == murand(&b);
}

TEST(skipping_is_as_good_as_drawing) {
  const OnDevice<unsigned int> out(3);
  skip_and_mix<<<1, 1>>>(out.get());
  for (const unsigned int same : out.values()) CHECK_EQ(same, 1u);
}

__global__ void draw_distributions(double* sums, int each) {
  murandStatePhilox4_32_10_t state;
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  murand_init(1234, t, 0, &state);
  double mine[8] = {};
  for (int i = 0; i < each; ++i) {
    const float u = murand_uniform(&state);
    if (!(u > 0.0f && u <= 1.0f)) mine[0] += 1e30;
    mine[0] += u;
    const float n = murand_normal(&state);
    mine[1] += n;
    mine[2] += n * n;
    const double d = murand_normal_double(&state);
    mine[3] += d;
    mine[4] += d * d;
    mine[5] += murand_uniform_double(&state);
    mine[6] += murand_poisson(&state, 3.0);
    mine[7] += murand_poisson(&state, 40.0);
  }
  for (int i = 0; i < 8; ++i) atomicAdd(&sums[i], mine[i]);
}

TEST(distributions_in_a_kernel_have_their_moments) {
  const OnDevice<double> sums(8);
  const int n = 64 * 128 * 20;
  draw_distributions<<<64, 128>>>(sums.get(), 20);
  const std::vector<double> got = sums.values();
  // Five standard errors.
  const double e = 5 / std::sqrt(double(n));
  CHECK_NEAR(got[0] / n, 0.5, e * 0.29);
  CHECK_NEAR(got[1] / n, 0.0, e);
  CHECK_NEAR(got[2] / n, 1.0, e * 1.42);
  CHECK_NEAR(got[3] / n, 0.0, e);
  CHECK_NEAR(got[4] / n, 1.0, e * 1.42);
  CHECK_NEAR(got[5] / n, 0.5, e * 0.29);
  CHECK_NEAR(got[6] / n, 3.0, e * 1.74);
  CHECK_NEAR(got[7] / n, 40.0, e * 6.4);
}

TEST(the_host_interface_gives_the_stream_of_seed_and_position) {
  const Generator generator(99);
  const size_t n = 100001;
  const OnDevice<unsigned int> out(n);
  CHECK_EQ(murandGenerate(generator, out, n), MURAND_STATUS_SUCCESS);
  const std::vector<unsigned int> got = out.values();
  for (size_t i = 0; i < n; i += 997) {
    const auto block = musa::rand::philox_block(99, 0, i / 4);
    const unsigned int words[] = {block.x, block.y, block.z, block.w};
    CHECK(got[i] == words[i % 4]);
  }
  // Two halves are the whole; so is what an offset begins with.
  const OnDevice<unsigned int> rest(1001);
  CHECK_EQ(murandSetPseudoRandomGeneratorSeed(generator, 99), MURAND_STATUS_SUCCESS);
  CHECK_EQ(murandGenerate(generator, rest, 333), MURAND_STATUS_SUCCESS);
  CHECK_EQ(murandGenerate(generator, rest.get() + 333, 668), MURAND_STATUS_SUCCESS);
  CHECK(std::equal(got.begin(), got.begin() + 1001, rest.values().begin()));
  CHECK_EQ(murandSetGeneratorOffset(generator, 50), MURAND_STATUS_SUCCESS);
  CHECK_EQ(murandGenerate(generator, rest, 1001), MURAND_STATUS_SUCCESS);
  CHECK(std::equal(got.begin() + 50, got.begin() + 1051, rest.values().begin()));
}

// Its hash, made with one thread of the pool: the other case makes it with several.
unsigned long long fingerprint() {
  const Generator generator(5);
  const size_t n = 200000;
  const OnDevice<float> a(n);
  const OnDevice<double> b(n);
  const OnDevice<unsigned int> c(n);
  CHECK_EQ(murandGenerateNormal(generator, a, n, 1.0f, 2.0f), MURAND_STATUS_SUCCESS);
  CHECK_EQ(murandGenerateUniformDouble(generator, b, n), MURAND_STATUS_SUCCESS);
  CHECK_EQ(murandGeneratePoisson(generator, c, n, 12.5), MURAND_STATUS_SUCCESS);
  unsigned long long hash = 1469598103934665603ull;
  const auto add = [&hash](const auto& values) {
    for (const auto value : values) {
      unsigned char bytes[sizeof(value)];
      std::memcpy(bytes, &value, sizeof(value));
      for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ull;
    }
  };
  add(a.values());
  add(b.values());
  add(c.values());
  return hash;
}

const char* const kFingerprintFile = "MUSA_TEST_FINGERPRINT";

TEST(the_number_of_host_threads_changes_no_number) {
  // Each count in a process of its own, for a pool is made once.
  unsigned long long hashes[3];
  const char* counts[] = {"1", "2", "7"};
  for (int i = 0; i < 3; ++i) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
      setenv("OMP_NUM_THREADS", counts[i], 1);
      setenv(kFingerprintFile, std::to_string(ends[1]).c_str(), 1);
      execl("/proc/self/exe", "self", "write_fingerprint", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(ends[1]);
    CHECK(read(ends[0], &hashes[i], sizeof(hashes[i])) == sizeof(hashes[i]));
    close(ends[0]);
  }
  CHECK(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
}

TEST(write_fingerprint) {
  // The other half of the case above; alone it only checks that the numbers can be made.
  const unsigned long long hash = fingerprint();
  if (const char* file = std::getenv(kFingerprintFile)) {
    CHECK(write(std::atoi(file), &hash, sizeof(hash)) == sizeof(hash));
  }
}

// limit_*: a row of sdk/mudnn/limits.def each.
TEST(limit_murand_uniform_interval) {
  CHECK_EQ(musa::rand::uniform(0), 0x1p-33f);
  CHECK_EQ(musa::rand::uniform(0xffffffffu), 1.0f);
  CHECK(musa::rand::uniform_double(0, 0) > 0.0);
  CHECK_EQ(musa::rand::uniform_double(0xffffffffu, 0xffffffffu), 1.0);
  const Generator generator(3);
  const size_t n = 1 << 20;
  const OnDevice<float> out(n);
  CHECK_EQ(murandGenerateUniform(generator, out, n), MURAND_STATUS_SUCCESS);
  const std::vector<float> got = out.values();
  CHECK(*std::min_element(got.begin(), got.end()) > 0.0f);
  CHECK(*std::max_element(got.begin(), got.end()) <= 1.0f);
  CHECK_NEAR(std::accumulate(got.begin(), got.end(), 0.0) / n, 0.5, 5 * 0.29 / 1024);
}

TEST(normal_and_log_normal_have_their_moments) {
  const Generator generator(17);
  const size_t n = 1 << 18;
  const OnDevice<float> single(n);
  const OnDevice<double> real(n);
  const auto moments = [n](const auto& values) {
    double mean = 0;
    double square = 0;
    for (const auto value : values) {
      mean += value;
      square += double(value) * value;
    }
    return std::pair(mean / n, square / n - mean / n * (mean / n));
  };
  const double e = 5.0 / 512;
  CHECK_EQ(murandGenerateNormal(generator, single, n, 3.0f, 2.0f), MURAND_STATUS_SUCCESS);
  CHECK_NEAR(moments(single.values()).first, 3.0, e * 2);
  CHECK_NEAR(moments(single.values()).second, 4.0, e * 4 * 1.42);
  CHECK_EQ(murandGenerateNormalDouble(generator, real, n, -1.0, 0.5), MURAND_STATUS_SUCCESS);
  CHECK_NEAR(moments(real.values()).first, -1.0, e * 0.5);
  CHECK_EQ(murandGenerateLogNormalDouble(generator, real, n, 0.25, 0.5), MURAND_STATUS_SUCCESS);
  CHECK_NEAR(moments(real.values()).first, std::exp(0.25 + 0.125), e * 0.8);
  const OnDevice<unsigned int> counts(n);
  for (const double lambda : {0.5, 9.0, 11.0, 300.0}) {
    CHECK_EQ(murandGeneratePoisson(generator, counts, n, lambda), MURAND_STATUS_SUCCESS);
    CHECK_NEAR(moments(counts.values()).first, lambda, e * std::sqrt(lambda));
    CHECK_NEAR(moments(counts.values()).second, lambda, e * lambda * 2.5);
  }
}

TEST(limit_murand_normal_count) {
  const Generator generator(1);
  const OnDevice<float> out(16);
  const OnDevice<double> real(16);
  CHECK_EQ(murandGenerateNormal(generator, out, 15, 0, 1), MURAND_STATUS_LENGTH_NOT_MULTIPLE);
  CHECK_EQ(murandGenerateLogNormal(generator, out, 1, 0, 1), MURAND_STATUS_LENGTH_NOT_MULTIPLE);
  CHECK_EQ(murandGenerateNormalDouble(generator, real, 3, 0, 1),
           MURAND_STATUS_LENGTH_NOT_MULTIPLE);
  CHECK_EQ(murandGenerateNormal(generator, out, 16, 0, 1), MURAND_STATUS_SUCCESS);
}

TEST(limit_murand_long_long) {
  const Generator generator(1);
  const OnDevice<unsigned long long> out(16);
  CHECK_EQ(murandGenerateLongLong(generator, out, 16), MURAND_STATUS_TYPE_ERROR);
  const OnDevice<unsigned int> words(16);
  CHECK_EQ(murandGenerate(generator, words, 16), MURAND_STATUS_SUCCESS);
}

TEST(what_the_real_library_refuses) {
  murandGenerator_t made = nullptr;
  CHECK_EQ(murandCreateGenerator(&made, MURAND_RNG_QUASI_SOBOL32), MURAND_STATUS_TYPE_ERROR);
  CHECK_EQ(murandCreateGenerator(nullptr, MURAND_RNG_PSEUDO_DEFAULT), MURAND_STATUS_OUT_OF_RANGE);
  const OnDevice<float> out(16);
  const OnDevice<unsigned int> words(16);
  {
    const Generator generator(1);
    for (const double lambda : {-1.0, 0.0, 400001.0, double(INFINITY), double(NAN)}) {
      CHECK_EQ(murandGeneratePoisson(generator, words, 16, lambda), MURAND_STATUS_OUT_OF_RANGE);
    }
    // So many that their bytes are few again.
    CHECK_EQ(murandGenerateUniform(generator, out, (size_t{1} << 62) + 4), MURAND_STATUS_OUT_OF_RANGE);
    CHECK_EQ(murandGenerate(generator, words, SIZE_MAX), MURAND_STATUS_OUT_OF_RANGE);
    std::vector<float> host(16);
    CHECK_EQ(murandGenerateUniform(generator, host.data(), 16), MURAND_STATUS_OUT_OF_RANGE);
    CHECK_EQ(murandGenerateUniform(generator, nullptr, 16), MURAND_STATUS_OUT_OF_RANGE);
    // After all of that the next correct call works.
    CHECK_EQ(murandGenerateUniform(generator, out, 16), MURAND_STATUS_SUCCESS);
    CHECK_EQ(murandGenerateUniform(generator, out, 0), MURAND_STATUS_SUCCESS);
    made = generator;
  }
  CHECK_EQ(murandGenerateUniform(made, out, 16), MURAND_STATUS_NOT_CREATED);
  CHECK_EQ(murandDestroyGenerator(made), MURAND_STATUS_NOT_CREATED);
}

TEST(a_generator_draws_on_its_stream) {
  const Generator generator(8);
  musaStream_t stream;
  CHECK_EQ(musaStreamCreate(&stream), musaSuccess);
  CHECK_EQ(murandSetStream(generator, stream), MURAND_STATUS_SUCCESS);
  const OnDevice<float> out(1000);
  CHECK_EQ(murandGenerateUniform(generator, out, 1000), MURAND_STATUS_SUCCESS);
  CHECK_EQ(musaStreamSynchronize(stream), musaSuccess);
  CHECK(out.values()[999] > 0.0f);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
  CHECK_EQ(murandGenerateUniform(generator, out, 1000), MURAND_STATUS_LAUNCH_FAILURE);
}

FAULT_TEST(after_a_sticky_error_nothing_is_drawn) {
  const Generator generator(8);
  const OnDevice<float> out(16);
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  CHECK_EQ(murandGenerateUniform(generator, out, 16), MURAND_STATUS_LAUNCH_FAILURE);
}

}  // namespace
