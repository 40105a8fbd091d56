// Shortcuts for a handful of floats (Call::run): a plain loop, or one launch, takes less time than
// describing the operands to ATen. Only for what rounds the same way however it is computed.
#pragma once

#include "DirectCalls.h"
#include "Internal.h"

namespace musa::dnn::internal {

constexpr int64_t kDirectElements = 256;

// How many elements dense FLOAT memory has; -1 where it is no such memory, or has more than `most`.
inline int64_t direct_elements(const Tensor& t, int64_t most = kDirectElements) {
  if (type(t) != Type::FLOAT) return -1;
  int64_t elements = 1;
  for (int64_t d = rank(t) - 1; d >= 0; --d) {
    const int64_t size = dims(t)[d];
    if (size == 1) continue;  // its stride does not matter
    if (size < 1 || size > most || strides(t)[d] != elements) return -1;
    elements *= size;
    if (elements > most) return -1;
  }
  return elements;
}

inline float* floats(const Tensor& t) { return static_cast<float*>(address(t)); }

// No element in common.
inline bool are_apart(const Tensor& a, int64_t a_elements, const Tensor& b, int64_t b_elements) {
  return floats(a) + a_elements <= floats(b) || floats(b) + b_elements <= floats(a);
}

// The same elements or none in common. What overlaps otherwise is ATen's to judge.
inline bool same_or_apart(const Tensor& a, int64_t a_elements, const Tensor& b,
                          int64_t b_elements) {
  return floats(a) == floats(b) || are_apart(a, a_elements, b, b_elements);
}

// Whether out[i], of `elements` of such memory, can be computed from in[i] alone.
inline bool is_direct_map(const Tensor& out, int64_t elements, const Tensor& in) {
  return same_shape(out, in) && direct_elements(in) == elements &&
         same_or_apart(out, elements, in, elements);
}

// out[i] = f(in[i], number) for n elements; false where the target does not compute it by itself.
inline bool map_directly(const Call& c, DirectFunction f, int64_t n, const Tensor& out,
                         const Tensor& in, float number = 0) {
  return c.map({f, n, floats(out), floats(in), nullptr, number});
}

inline bool map_directly(const Call& c, DirectFunction f, int64_t n, const Tensor& out,
                         const Tensor& l, const Tensor& r) {
  return c.map({f, n, floats(out), floats(l), floats(r), 0});
}

// *out = the sum of `in`, or its mean; false as above.
inline bool sum_directly(const Call& c, int64_t n, const Tensor& out, const Tensor& in, bool mean) {
  return c.sum({n, floats(out), floats(in), mean});
}

}  // namespace musa::dnn::internal
