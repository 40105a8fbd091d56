// Normal numbers from uniform ones, two at a time (Box and Muller 1958).
#pragma once

#include <cmath>

#include "murand_philox.h"

namespace musa::rand {

template <typename T>
struct Two {
  T x, y;
};

MURAND_FUNCTION Two<float> normal(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0f * std::log(uniform(a)));
  const float angle = 6.283185307179586f * uniform(b);
  return {radius * std::sin(angle), radius * std::cos(angle)};
}

MURAND_FUNCTION Two<double> normal_double(const Words4& w) {
  const double radius = std::sqrt(-2.0 * std::log(uniform_double(w.x, w.y)));
  const double angle = 6.283185307179586476925 * uniform_double(w.z, w.w);
  return {radius * std::sin(angle), radius * std::cos(angle)};
}

// The C library's lgamma leaves the sign in a variable that all threads share; a device's does not.
MURAND_FUNCTION double log_gamma(double x) {
#ifdef __MUSA_ARCH__
  return ::lgamma(x);
#else
  int sign;
  return ::lgamma_r(x, &sign);
#endif
}

// A Poisson number from a source of uniform ones: for small means by multiplication of uniforms
// (Knuth, The Art of Computer Programming vol. 2, 3.4.1), else by transformed rejection (Hormann,
// "The transformed rejection method for generating Poisson random variables", 1993, algorithm
// PTRS).
template <typename Uniform>
MURAND_FUNCTION unsigned int poisson(double mean, Uniform&& draw) {
  if (!(mean > 0)) return 0;
  if (mean < 10) {
    const double limit = std::exp(-mean);
    double product = draw();
    unsigned int count = 0;
    while (product > limit) {
      product *= draw();
      ++count;
    }
    return count;
  }
  const double log_mean = std::log(mean);
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = draw() - 0.5;
    const double v = draw();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<unsigned int>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <=
        k * log_mean - mean - log_gamma(k + 1)) {
      return static_cast<unsigned int>(k);
    }
  }
}

}  // namespace musa::rand
