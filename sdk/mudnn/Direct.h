// Shortcuts for a handful of floats (Call::run): a plain loop takes less time than describing the
// operands to ATen. Only for what rounds the same way however it is computed.
#pragma once

#include "Internal.h"

namespace musa::dnn::internal {

constexpr int64_t kDirectElements = 256;

// Dense FLOAT memory of few elements.
inline bool is_direct(const Tensor& t, int64_t most = kDirectElements) {
  return type(t) == Type::FLOAT && numel(t) <= most && contiguous(t);
}

// The same elements or none in common. What overlaps otherwise is ATen's to judge.
inline bool same_or_apart(const Tensor& a, int64_t a_elements, const Tensor& b,
                          int64_t b_elements) {
  const auto* x = static_cast<const float*>(address(a));
  const auto* y = static_cast<const float*>(address(b));
  return x == y || x + a_elements <= y || y + b_elements <= x;
}

// Whether out[i] can be computed from in[i] alone, element by element.
inline bool is_direct_map(const Tensor& out, const Tensor& in) {
  return type(in) == Type::FLOAT && same_shape(out, in) && contiguous(in) &&
         same_or_apart(out, numel(out), in, numel(out));
}

inline float* floats(const Tensor& t) { return static_cast<float*>(address(t)); }

// out[i] = f(in[i]); false where it is no such call, or the stream does not run work at once.
template <class F>
bool map_directly(const Call& c, const Tensor& out, const Tensor& in, F f) {
  return c.now([o = floats(out), i = floats(in), n = numel(out), f] {
    for (int64_t k = 0; k < n; ++k) o[k] = f(i[k]);
  });
}

template <class F>
bool map_directly(const Call& c, const Tensor& out, const Tensor& l, const Tensor& r, F f) {
  return c.now([o = floats(out), a = floats(l), b = floats(r), n = numel(out), f] {
    for (int64_t k = 0; k < n; ++k) o[k] = f(a[k], b[k]);
  });
}

}  // namespace musa::dnn::internal
