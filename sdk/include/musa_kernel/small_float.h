// Floating-point numbers of 16 bits, by their formats: __half (IEEE 754 binary16: 5 bits of
// exponent, 10 of fraction) and __mt_bfloat16 (8 and 7). Arithmetic is done in float and rounded
// once, to nearest even; for +, -, *, / and sqrt that is the correctly rounded result, since float
// has more than twice the digits and two (Figueroa 1995).
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace musa::host {

template <int kExponentBits, int kFractionBits>
struct SmallFormat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint16_t kInfinity =
      static_cast<uint16_t>(((1u << kExponentBits) - 1) << kFractionBits);
  static constexpr uint16_t kQuietNan = static_cast<uint16_t>(0x7fffu);

  static constexpr float to_float(uint16_t bits) {
    if constexpr (kExponentBits == 8) {
      return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    } else {
      const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
      const uint32_t exponent = (bits & 0x7fffu) >> kFractionBits;
      const uint32_t fraction = bits & ((1u << kFractionBits) - 1);
      constexpr int kShift = 23 - kFractionBits;
      if (exponent == (1u << kExponentBits) - 1) {
        return std::bit_cast<float>(sign | 0x7f800000u | (fraction << kShift));
      }
      if (exponent != 0) {
        return std::bit_cast<float>(sign | ((exponent + 127 - kBias) << 23) | (fraction << kShift));
      }
      // Subnormal here, normal as float: fraction * 2^(1 - bias - fraction bits).
      const float scale =
          std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - kFractionBits) << 23);
      const float magnitude = static_cast<float>(fraction) * scale;
      return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
    }
  }

  // Rounds to nearest even; `up` and `down` give the directed roundings of the _ru and _rd
  // conversions, `toward_zero` that of _rz.
  enum class Rounding { nearest, toward_zero, up, down };

  static constexpr uint16_t from_float(float value, Rounding rounding = Rounding::nearest) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return kQuietNan;
    if (magnitude == 0x7f800000u) return sign | kInfinity;
    int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
    uint64_t significand = (magnitude & 0x7fffffu) | (magnitude >= 0x800000u ? 0x800000u : 0u);
    if (magnitude < 0x800000u) exponent += 1;  // float's own subnormals
    // What to cut off: the digits beyond the fraction, and more below the smallest normal number.
    int cut = 23 - kFractionBits;
    if (exponent <= 0) {
      cut += 1 - exponent;
      exponent = 1;
    }
    if (cut > 40) cut = 40;
    const uint64_t kept = significand >> cut;
    const uint64_t rest = significand & ((uint64_t{1} << cut) - 1);
    const uint64_t half = uint64_t{1} << (cut - 1);
    bool away = false;
    switch (rounding) {
      case Rounding::nearest:
        away = rest > half || (rest == half && (kept & 1) != 0);
        break;
      case Rounding::toward_zero:
        break;
      case Rounding::up:
        away = rest != 0 && sign == 0;
        break;
      case Rounding::down:
        away = rest != 0 && sign != 0;
        break;
    }
    // A carry out of the fraction raises the exponent by itself: the encoding is that way.
    const uint64_t encoded =
        (kept >> kFractionBits != 0 ? static_cast<uint64_t>(exponent) << kFractionBits : 0) +
        (kept & ((uint64_t{1} << kFractionBits) - 1)) + (away ? 1 : 0);
    if (encoded >= kInfinity) {
      const bool stays = rounding == Rounding::toward_zero ||
                         (rounding == Rounding::up && sign != 0) ||
                         (rounding == Rounding::down && sign == 0);
      return sign | static_cast<uint16_t>(stays ? kInfinity - 1 : kInfinity);
    }
    return sign | static_cast<uint16_t>(encoded);
  }
};

// a + b in float, rounded so that a further rounding to fewer digits is right: where the sum is not
// exact, its last bit is odd (Boldo and Melquiond 2008).
constexpr float to_odd(double a, double b) {
  const double sum = a + b;
  const double other = sum - a;
  const double error = (a - (sum - other)) + (b - other);
  auto result = static_cast<float>(sum);
  if (result - result == 0 && (static_cast<double>(result) != sum || error != 0)) {
    auto bits = std::bit_cast<uint32_t>(result);
    // Toward zero first, then the last bit set.
    const double truth_beyond = (sum - static_cast<double>(result)) + error;
    const bool overshot = result > 0 ? truth_beyond < 0 : truth_beyond > 0;
    if (overshot && result != 0) --bits;
    bits |= 1;
    result = std::bit_cast<float>(bits);
  }
  return result;
}

// What a number becomes on its way to 16 bits: one rounding in all, also from double and integers.
template <typename T>
constexpr float to_float_once(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return to_odd(static_cast<double>(value), 0.0);
  }
}

using HalfFormat = SmallFormat<5, 10>;
using BfloatFormat = SmallFormat<8, 7>;

template <typename T>
concept SmallFloat = requires { typename T::musa_small_format; };

template <typename T>
concept PlainNumber = std::is_arithmetic_v<T>;

// What __half and __mt_bfloat16 share. Plain data: no constructor but the conversions, so that they
// may stand in unions and shared memory.
#define MUSA_HOST_SMALL_FLOAT(NAME, FORMAT)                                                       \
  struct alignas(2) NAME {                                                                        \
    using musa_small_format = FORMAT;                                                             \
    unsigned short bits;                                                                          \
    NAME() = default;                                                                             \
    template <::musa::host::PlainNumber T>                                                        \
    constexpr NAME(T value) : bits(FORMAT::from_float(::musa::host::to_float_once(value))) {}     \
    static constexpr NAME from_bits(uint16_t bits) {                                              \
      NAME result{};                                                                              \
      result.bits = bits;                                                                         \
      return result;                                                                              \
    }                                                                                             \
    constexpr operator float() const { return FORMAT::to_float(bits); }                           \
    constexpr NAME operator-() const { return from_bits(static_cast<uint16_t>(bits ^ 0x8000u)); } \
    constexpr NAME operator+() const { return *this; }                                            \
    constexpr NAME& operator+=(NAME other) { return *this = *this + other; }                      \
    constexpr NAME& operator-=(NAME other) { return *this = *this - other; }                      \
    constexpr NAME& operator*=(NAME other) { return *this = *this * other; }                      \
    constexpr NAME& operator/=(NAME other) { return *this = *this / other; }                      \
    friend constexpr NAME operator+(NAME a, NAME b) { return NAME(float(a) + float(b)); }         \
    friend constexpr NAME operator-(NAME a, NAME b) { return NAME(float(a) - float(b)); }         \
    friend constexpr NAME operator*(NAME a, NAME b) { return NAME(float(a) * float(b)); }         \
    friend constexpr NAME operator/(NAME a, NAME b) { return NAME(float(a) / float(b)); }         \
    friend constexpr bool operator==(NAME a, NAME b) { return float(a) == float(b); }             \
    friend constexpr bool operator<(NAME a, NAME b) { return float(a) < float(b); }               \
    friend constexpr bool operator>(NAME a, NAME b) { return float(a) > float(b); }               \
    friend constexpr bool operator<=(NAME a, NAME b) { return float(a) <= float(b); }             \
    friend constexpr bool operator>=(NAME a, NAME b) { return float(a) >= float(b); }             \
  };                                                                                              \
  struct alignas(4) NAME##2 { NAME x, y; };

// The conversions from float with a directed rounding: STEM_rz, STEM_ru and STEM_rd.
#define MUSA_HOST_ROUNDED(NAME, STEM)                                             \
  inline NAME STEM##_rz(float x) {                                                \
    using Format = NAME::musa_small_format;                                       \
    return NAME::from_bits(Format::from_float(x, Format::Rounding::toward_zero)); \
  }                                                                               \
  inline NAME STEM##_ru(float x) {                                                \
    using Format = NAME::musa_small_format;                                       \
    return NAME::from_bits(Format::from_float(x, Format::Rounding::up));          \
  }                                                                               \
  inline NAME STEM##_rd(float x) {                                                \
    using Format = NAME::musa_small_format;                                       \
    return NAME::from_bits(Format::from_float(x, Format::Rounding::down));        \
  }

// The functions of both types: arithmetic, comparison, mathematics, on one and on pairs of them.
// H2 is the pair.
#define MUSA_HOST_SMALL_FUNCTIONS(H, H2)                                                         \
  inline H __hadd(H a, H b) { return a + b; }                                                    \
  inline H __hsub(H a, H b) { return a - b; }                                                    \
  inline H __hmul(H a, H b) { return a * b; }                                                    \
  inline H __hdiv(H a, H b) { return a / b; }                                                    \
  inline H __hneg(H a) { return -a; }                                                            \
  inline H __habs(H a) { return H::from_bits(a.bits & 0x7fffu); }                                \
  /* the product is exact in double, the sum rounded there: one more rounding, to float, */      \
  /* could double it, so it goes to odd first */                                                 \
  inline H __hfma(H a, H b, H c) {                                                               \
    return H(::musa::host::to_odd(double(float(a)) * double(float(b)), double(float(c))));       \
  }                                                                                              \
  inline H __hadd_sat(H a, H b) { return H(__saturatef(float(a) + float(b))); }                  \
  inline H __hsub_sat(H a, H b) { return H(__saturatef(float(a) - float(b))); }                  \
  inline H __hmul_sat(H a, H b) { return H(__saturatef(float(a) * float(b))); }                  \
  inline bool __heq(H a, H b) { return float(a) == float(b); }                                   \
  inline bool __hne(H a, H b) { return float(a) < float(b) || float(a) > float(b); }             \
  inline bool __hlt(H a, H b) { return float(a) < float(b); }                                    \
  inline bool __hle(H a, H b) { return float(a) <= float(b); }                                   \
  inline bool __hgt(H a, H b) { return float(a) > float(b); }                                    \
  inline bool __hge(H a, H b) { return float(a) >= float(b); }                                   \
  inline bool __hisnan(H a) { return std::isnan(float(a)); }                                     \
  inline int __hisinf(H a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }        \
  inline H __hmax(H a, H b) { return H(std::fmax(float(a), float(b))); }                         \
  inline H __hmin(H a, H b) { return H(std::fmin(float(a), float(b))); }                         \
  inline H __hmax_nan(H a, H b) { return __hisnan(a) ? a : (__hisnan(b) ? b : __hmax(a, b)); }   \
  inline H __hmin_nan(H a, H b) { return __hisnan(a) ? a : (__hisnan(b) ? b : __hmin(a, b)); }   \
  inline H hsqrt(H a) { return H(std::sqrt(float(a))); }                                         \
  inline H hrsqrt(H a) { return H(1.0 / std::sqrt(double(float(a)))); }                          \
  inline H hrcp(H a) { return H(1.0f / float(a)); }                                              \
  inline H hexp(H a) { return H(std::exp(float(a))); }                                           \
  inline H hexp2(H a) { return H(std::exp2(float(a))); }                                         \
  inline H hexp10(H a) { return H(__exp10f(float(a))); }                                         \
  inline H hlog(H a) { return H(std::log(float(a))); }                                           \
  inline H hlog2(H a) { return H(std::log2(float(a))); }                                         \
  inline H hlog10(H a) { return H(std::log10(float(a))); }                                       \
  inline H hsin(H a) { return H(std::sin(float(a))); }                                           \
  inline H hcos(H a) { return H(std::cos(float(a))); }                                           \
  inline H htanh(H a) { return H(std::tanh(float(a))); }                                         \
  inline H hfloor(H a) { return H(std::floor(float(a))); }                                       \
  inline H hceil(H a) { return H(std::ceil(float(a))); }                                         \
  inline H htrunc(H a) { return H(std::trunc(float(a))); }                                       \
  inline H hrint(H a) { return H(std::nearbyint(float(a))); }                                    \
  inline H2 make_##H2(H x, H y) { return {x, y}; }                                               \
  inline H __low2half(H2 a) { return a.x; }                                                      \
  inline H __high2half(H2 a) { return a.y; }                                                     \
  inline float __low2float(H2 a) { return float(a.x); }                                          \
  inline float __high2float(H2 a) { return float(a.y); }                                         \
  inline H2 __hadd2(H2 a, H2 b) { return {a.x + b.x, a.y + b.y}; }                               \
  inline H2 __hsub2(H2 a, H2 b) { return {a.x - b.x, a.y - b.y}; }                               \
  inline H2 __hmul2(H2 a, H2 b) { return {a.x * b.x, a.y * b.y}; }                               \
  inline H2 __h2div(H2 a, H2 b) { return {a.x / b.x, a.y / b.y}; }                               \
  inline H2 __hneg2(H2 a) { return {-a.x, -a.y}; }                                               \
  inline H2 __habs2(H2 a) { return {__habs(a.x), __habs(a.y)}; }                                 \
  inline H2 __hmax2(H2 a, H2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                 \
  inline H2 __hmin2(H2 a, H2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                 \
  inline H2 __hfma2(H2 a, H2 b, H2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  inline H2 operator+(H2 a, H2 b) { return __hadd2(a, b); }                                      \
  inline H2 operator-(H2 a, H2 b) { return __hsub2(a, b); }                                      \
  inline H2 operator*(H2 a, H2 b) { return __hmul2(a, b); }                                      \
  inline H2 operator/(H2 a, H2 b) { return __h2div(a, b); }                                      \
  inline H2& operator+=(H2& a, H2 b) { return a = a + b; }                                       \
  inline H2& operator*=(H2& a, H2 b) { return a = a * b; }                                       \
  inline H2 h2exp(H2 a) { return {hexp(a.x), hexp(a.y)}; }                                       \
  inline H2 h2sqrt(H2 a) { return {hsqrt(a.x), hsqrt(a.y)}; }                                    \
  inline H2 h2rsqrt(H2 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }                                 \
  inline H2 h2rcp(H2 a) { return {hrcp(a.x), hrcp(a.y)}; }                                       \
  inline H atomicAdd(H* address, H value) {                                                      \
    return ::musa::host::atomic_update(address, [value](H old) { return old + value; });         \
  }                                                                                              \
  inline H2 atomicAdd(H2* address, H2 value) {                                                   \
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};                   \
  }

}  // namespace musa::host
