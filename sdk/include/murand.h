// muRAND, host interface: arrays of random numbers in device memory.
//
// Every pseudo-random type is served by Philox4x32-10 here (murand_philox.h): the distributions are
// right, the numbers of the toolkit's other generators are not theirs. Word i of a generator's
// stream depends on seed and i alone. What each call takes from the stream: Generate, Uniform,
// Normal and LogNormal a word a number; the Double forms two; Poisson has one subsequence a number.
#pragma once

#include <stddef.h>

#include "musa_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAND_VERSION 10000
#define MURAND_API __attribute__((visibility("default")))

// Values as in the toolkit (rocRAND's, which it follows).
typedef enum murandStatus {
  MURAND_STATUS_SUCCESS = 0,
  MURAND_STATUS_VERSION_MISMATCH = 100,
  MURAND_STATUS_NOT_CREATED = 101,  // also NOT_INITIALIZED: no such generator
  MURAND_STATUS_ALLOCATION_FAILED = 102,
  MURAND_STATUS_TYPE_ERROR = 103,
  MURAND_STATUS_OUT_OF_RANGE = 104,
  MURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  MURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  MURAND_STATUS_LAUNCH_FAILURE = 107,
  MURAND_STATUS_INTERNAL_ERROR = 108
} murandStatus_t;

typedef enum murandRngType {
  MURAND_RNG_PSEUDO_DEFAULT = 400,
  MURAND_RNG_PSEUDO_XORWOW = 401,
  MURAND_RNG_PSEUDO_MRG32K3A = 402,
  MURAND_RNG_PSEUDO_MTGP32 = 403,
  MURAND_RNG_PSEUDO_PHILOX4_32_10 = 404,
  MURAND_RNG_QUASI_DEFAULT = 500,
  MURAND_RNG_QUASI_SOBOL32 = 501
} murandRngType_t;

struct murandGenerator;
typedef struct murandGenerator* murandGenerator_t;

// TYPE_ERROR for quasi-random types, which the stand-in does not have. The generator draws for the
// device that is current now, on its default stream until SetStream; seed 0, offset 0.
MURAND_API murandStatus_t murandCreateGenerator(murandGenerator_t* generator, murandRngType_t type);
MURAND_API murandStatus_t murandDestroyGenerator(murandGenerator_t generator);
MURAND_API murandStatus_t murandGetVersion(int* version);
MURAND_API murandStatus_t murandSetStream(murandGenerator_t generator, musaStream_t stream);
// Starts the seed's stream from the beginning.
MURAND_API murandStatus_t murandSetPseudoRandomGeneratorSeed(murandGenerator_t generator,
                                                             unsigned long long seed);
// The next call begins at this word of the stream.
MURAND_API murandStatus_t murandSetGeneratorOffset(murandGenerator_t generator,
                                                   unsigned long long offset);

// n numbers into device memory; returns before they are there where streams are asynchronous.
// OUT_OF_RANGE for memory that the device cannot write.
MURAND_API murandStatus_t murandGenerate(murandGenerator_t generator, unsigned int* out, size_t n);
// Always TYPE_ERROR: no pseudo-random type makes 64 bits at once.
MURAND_API murandStatus_t murandGenerateLongLong(murandGenerator_t generator,
                                                 unsigned long long* out, size_t n);
// Uniform in (0, 1].
MURAND_API murandStatus_t murandGenerateUniform(murandGenerator_t generator, float* out, size_t n);
MURAND_API murandStatus_t murandGenerateUniformDouble(murandGenerator_t generator, double* out,
                                                      size_t n);
// LENGTH_NOT_MULTIPLE for an odd n: normal numbers come in pairs.
MURAND_API murandStatus_t murandGenerateNormal(murandGenerator_t generator, float* out, size_t n,
                                               float mean, float stddev);
MURAND_API murandStatus_t murandGenerateNormalDouble(murandGenerator_t generator, double* out,
                                                     size_t n, double mean, double stddev);
MURAND_API murandStatus_t murandGenerateLogNormal(murandGenerator_t generator, float* out, size_t n,
                                                  float mean, float stddev);
MURAND_API murandStatus_t murandGenerateLogNormalDouble(murandGenerator_t generator, double* out,
                                                        size_t n, double mean, double stddev);
// OUT_OF_RANGE for a mean that is not positive.
MURAND_API murandStatus_t murandGeneratePoisson(murandGenerator_t generator, unsigned int* out,
                                                size_t n, double lambda);

#ifdef __cplusplus
}  // extern "C"
#endif
