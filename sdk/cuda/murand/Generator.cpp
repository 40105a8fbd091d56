// muRAND's host interface over cuRAND's Philox4x32-10. Statuses have names of their own; the order
// of the numbers within an array is cuRAND's, so arrays differ from those of the host stand-in.
#include <curand.h>

#include <mutex>
#include <new>
#include <unordered_set>

#include "murand.h"
#include "musa_cuda.h"

struct murandGenerator {
  curandGenerator_t curand = nullptr;
  int device = 0;
};

namespace {

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

murandStatus_t status_of(curandStatus_t status) {
  switch (status) {
    case CURAND_STATUS_SUCCESS:
      return MURAND_STATUS_SUCCESS;
    case CURAND_STATUS_VERSION_MISMATCH:
      return MURAND_STATUS_VERSION_MISMATCH;
    case CURAND_STATUS_NOT_INITIALIZED:
      return MURAND_STATUS_NOT_CREATED;
    case CURAND_STATUS_ALLOCATION_FAILED:
      return MURAND_STATUS_ALLOCATION_FAILED;
    case CURAND_STATUS_TYPE_ERROR:
      return MURAND_STATUS_TYPE_ERROR;
    case CURAND_STATUS_OUT_OF_RANGE:
      return MURAND_STATUS_OUT_OF_RANGE;
    case CURAND_STATUS_LENGTH_NOT_MULTIPLE:
      return MURAND_STATUS_LENGTH_NOT_MULTIPLE;
    case CURAND_STATUS_DOUBLE_PRECISION_REQUIRED:
      return MURAND_STATUS_DOUBLE_PRECISION_REQUIRED;
    case CURAND_STATUS_LAUNCH_FAILURE:
    case CURAND_STATUS_PREEXISTING_FAILURE:
      return MURAND_STATUS_LAUNCH_FAILURE;
    default:
      return MURAND_STATUS_INTERNAL_ERROR;
  }
}

// A generator draws on its own device, whichever is current.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (musaGetDevice(&before_) == musaSuccess && before_ != device) {
      moved_ = musaSetDevice(device) == musaSuccess;
    }
  }
  ~OnDevice() {
    if (moved_) (void)musaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool moved_ = false;
};

// The checks that cuRAND leaves to the kernel, then `call`. `group`: numbers that come together.
template <typename T, typename Call>
murandStatus_t generate(murandGenerator_t generator, T* out, size_t n, size_t group, Call call) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  if (n % group != 0) return MURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (n == 0) return MURAND_STATUS_SUCCESS;
  if (!musa::cuda::device_accessible(out, n * sizeof(T), generator->device)) {
    return MURAND_STATUS_OUT_OF_RANGE;
  }
  const OnDevice here(generator->device);
  return status_of(call(generator->curand));
}

constexpr size_t kPair = 2;  // normal numbers

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
  curandStatus_t status = curandCreateGenerator(&made->curand, CURAND_RNG_PSEUDO_PHILOX4_32_10);
  if (status == CURAND_STATUS_SUCCESS) {
    // As the header promises; cuRAND's own default is another seed.
    status = curandSetPseudoRandomGeneratorSeed(made->curand, 0);
  }
  if (status != CURAND_STATUS_SUCCESS) {
    if (made->curand != nullptr) (void)curandDestroyGenerator(made->curand);
    delete made;
    return status_of(status);
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
  const murandStatus_t status = status_of(curandDestroyGenerator(generator->curand));
  delete generator;
  return status;
}

murandStatus_t murandGetVersion(int* version) {
  if (version == nullptr) return MURAND_STATUS_OUT_OF_RANGE;
  *version = MURAND_VERSION;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetStream(murandGenerator_t generator, musaStream_t stream) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  return status_of(curandSetStream(generator->curand, stream));
}

murandStatus_t murandSetPseudoRandomGeneratorSeed(murandGenerator_t generator,
                                                  unsigned long long seed) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  const curandStatus_t status = curandSetPseudoRandomGeneratorSeed(generator->curand, seed);
  if (status != CURAND_STATUS_SUCCESS) return status_of(status);
  return status_of(curandSetGeneratorOffset(generator->curand, 0));
}

murandStatus_t murandSetGeneratorOffset(murandGenerator_t generator, unsigned long long offset) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  return status_of(curandSetGeneratorOffset(generator->curand, offset));
}

murandStatus_t murandGenerate(murandGenerator_t generator, unsigned int* out, size_t n) {
  return generate(generator, out, n, 1,
                  [=](curandGenerator_t g) { return curandGenerate(g, out, n); });
}

murandStatus_t murandGenerateLongLong(murandGenerator_t generator, unsigned long long*, size_t) {
  return is_live(generator) ? MURAND_STATUS_TYPE_ERROR : MURAND_STATUS_NOT_CREATED;
}

murandStatus_t murandGenerateUniform(murandGenerator_t generator, float* out, size_t n) {
  return generate(generator, out, n, 1,
                  [=](curandGenerator_t g) { return curandGenerateUniform(g, out, n); });
}

murandStatus_t murandGenerateUniformDouble(murandGenerator_t generator, double* out, size_t n) {
  return generate(generator, out, n, 1,
                  [=](curandGenerator_t g) { return curandGenerateUniformDouble(g, out, n); });
}

murandStatus_t murandGenerateNormal(murandGenerator_t generator, float* out, size_t n, float mean,
                                    float stddev) {
  return generate(generator, out, n, kPair, [=](curandGenerator_t g) {
    return curandGenerateNormal(g, out, n, mean, stddev);
  });
}

murandStatus_t murandGenerateNormalDouble(murandGenerator_t generator, double* out, size_t n,
                                          double mean, double stddev) {
  return generate(generator, out, n, kPair, [=](curandGenerator_t g) {
    return curandGenerateNormalDouble(g, out, n, mean, stddev);
  });
}

murandStatus_t murandGenerateLogNormal(murandGenerator_t generator, float* out, size_t n,
                                       float mean, float stddev) {
  return generate(generator, out, n, kPair, [=](curandGenerator_t g) {
    return curandGenerateLogNormal(g, out, n, mean, stddev);
  });
}

murandStatus_t murandGenerateLogNormalDouble(murandGenerator_t generator, double* out, size_t n,
                                             double mean, double stddev) {
  return generate(generator, out, n, kPair, [=](curandGenerator_t g) {
    return curandGenerateLogNormalDouble(g, out, n, mean, stddev);
  });
}

murandStatus_t murandGeneratePoisson(murandGenerator_t generator, unsigned int* out, size_t n,
                                     double lambda) {
  if (!is_live(generator)) return MURAND_STATUS_NOT_CREATED;
  if (!(lambda > 0)) return MURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, out, n, 1,
                  [=](curandGenerator_t g) { return curandGeneratePoisson(g, out, n, lambda); });
}
