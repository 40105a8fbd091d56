// What the tests of muDNN's mathematical classes compare with: operands, and functions in double
// that do not share their code.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>
#include <vector>

namespace check {

inline const double kInfinity = std::numeric_limits<double>::infinity();
inline const double kNan = std::numeric_limits<double>::quiet_NaN();

inline double tolerance(at::ScalarType type) {
  return type == at::kHalf ? 4e-3 : type == at::kBFloat16 ? 3e-2 : type == at::kFloat ? 2e-5 : 1e-9;
}

inline at::Tensor values(std::vector<double> data, at::ScalarType type) {
  return at::tensor(data, at::kDouble).to(type);
}

template <typename F>
at::Tensor map(const at::Tensor& in, F&& f) {
  at::Tensor out = in.to(at::kDouble).clone(at::MemoryFormat::Contiguous);
  double* data = out.data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) data[i] = f(data[i]);
  return out;
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double round_half_even(double x) { return std::nearbyint(x); }
inline double clip(double x, double low, double high) { return std::min(std::max(x, low), high); }
inline double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
inline double softplus(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}
inline double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double floor_mod(double x, double y) { return x - std::floor(x / y) * y; }

inline at::Tensor ramp(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  const int64_t n = c10::multiply_integers(sizes);
  at::Tensor t = at::arange(n, at::TensorOptions(at::kDouble));
  return ((t * 37).remainder(23) - 11).div(4).reshape(sizes).to(type);
}

}  // namespace check
