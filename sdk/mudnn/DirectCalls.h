// What a target computes by itself, of floats, where describing the operands to ATen takes longer
// than the work: functions that round the same way however they are computed, and sums (Direct.h);
// products (MatMul.cpp).
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define DIRECT_FUNCTION __host__ __device__
#else
#define DIRECT_FUNCTION
#endif

namespace musa::dnn::internal {

enum class DirectFunction : uint8_t { ABS, RELU, ADD, SUB, MUL, DIV };

/// out[i] = f(a[i], b[i]) for n elements; where b is null, f(a[i], number).
struct DirectMap {
  DirectFunction function;
  int64_t n;
  float* out;
  const float* a;
  const float* b;
  float number;
};

/// *out = the sum of a[0 .. n), or their mean, accumulated in double.
struct DirectSum {
  int64_t n;
  float* out;
  const float* a;
  bool mean;
};

/// A dense matrix: its rows lie one after the other, or its columns, of `leading` floats each.
struct DirectMatrix {
  const float* memory;
  int leading;
  bool by_columns;
};

/// out = l @ r, of (rows, depth) and (depth, columns), each size 2 at least. `out` is dense, by
/// rows, and shares no memory with l and r.
struct DirectProduct {
  int rows, columns, depth;
  float* out;
  DirectMatrix l, r;
};

template <DirectFunction function>
DIRECT_FUNCTION inline float direct(float a, float b) {
  if constexpr (function == DirectFunction::ABS) return std::fabs(a);
  if constexpr (function == DirectFunction::RELU) return a < 0 ? 0 : a;  // a NaN stays
  if constexpr (function == DirectFunction::ADD) return a + b;
  if constexpr (function == DirectFunction::SUB) return a - b;
  if constexpr (function == DirectFunction::MUL) return a * b;
  if constexpr (function == DirectFunction::DIV) return a / b;
}

/// use.operator()<function>() with the function that `function` names.
template <class Use>
void with_direct(DirectFunction function, Use use) {
  switch (function) {
    case DirectFunction::ABS:
      return use.template operator()<DirectFunction::ABS>();
    case DirectFunction::RELU:
      return use.template operator()<DirectFunction::RELU>();
    case DirectFunction::ADD:
      return use.template operator()<DirectFunction::ADD>();
    case DirectFunction::SUB:
      return use.template operator()<DirectFunction::SUB>();
    case DirectFunction::MUL:
      return use.template operator()<DirectFunction::MUL>();
    case DirectFunction::DIV:
      return use.template operator()<DirectFunction::DIV>();
  }
}

}  // namespace musa::dnn::internal
