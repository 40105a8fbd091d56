// Functions that every kernel may call without a header: the C library's are visible anyway (sinf,
// fmaf, erfcf ...); here are those that C has not.
//
// Intrinsics that trade accuracy for speed on a device (__expf, __sinf, __fdividef ...) are the
// accurate ones here; tests against a device need its tolerance, not this one's.
#pragma once

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <thread>
#include <type_traits>

#include "engine.h"

// ---- reals: what C lacks
// -------------------------------------------------------------------------

#define MUSA_HOST_REAL(T, SUFFIX)                                                             \
  inline T rsqrt##SUFFIX(T x) { return T(1) / std::sqrt(x); }                                 \
  inline T rcbrt##SUFFIX(T x) { return T(1) / std::cbrt(x); }                                 \
  inline T fdivide##SUFFIX(T x, T y) { return x / y; }                                        \
  inline T sinpi##SUFFIX(T x) {                                                               \
    const T r = std::remainder(x, T(2));                                                      \
    return std::fabs(r) == T(1) || r == T(0)                                                  \
               ? std::copysign(T(0), x)                                                       \
               : static_cast<T>(std::sin(3.14159265358979323846 * static_cast<double>(r)));   \
  }                                                                                           \
  inline T cospi##SUFFIX(T x) {                                                               \
    const T r = std::fabs(std::remainder(x, T(2)));                                           \
    return r == T(0.5)                                                                        \
               ? T(0)                                                                         \
               : static_cast<T>(std::cos(3.14159265358979323846 * static_cast<double>(r)));   \
  }                                                                                           \
  inline void sincospi##SUFFIX(T x, T* sine, T* cosine) {                                     \
    *sine = sinpi##SUFFIX(x);                                                                 \
    *cosine = cospi##SUFFIX(x);                                                               \
  }                                                                                           \
  inline T rhypot##SUFFIX(T x, T y) { return T(1) / std::hypot(x, y); }                       \
  inline T norm3d##SUFFIX(T a, T b, T c) { return std::sqrt(a * a + b * b + c * c); }         \
  inline T rnorm3d##SUFFIX(T a, T b, T c) { return T(1) / std::sqrt(a * a + b * b + c * c); } \
  inline T normcdf##SUFFIX(T x) {                                                             \
    return static_cast<T>(0.5 * std::erfc(-static_cast<double>(x) / 1.41421356237309504880)); \
  }
MUSA_HOST_REAL(float, f)
MUSA_HOST_REAL(double, )
#undef MUSA_HOST_REAL
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrt(float x) { return rcbrtf(x); }

namespace musa::host {

// The inverse of erf on (-1, 1): a start after Winitzki (2008), then Halley's iteration on erf
// itself, which triples the digits in each of three steps.
inline double inverse_erf(double y) {
  if (!(std::fabs(y) < 1)) {
    return std::fabs(y) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y)
                             : std::numeric_limits<double>::quiet_NaN();
  }
  if (y == 0) return y;
  constexpr double kA = 0.147;
  constexpr double kPi = 3.14159265358979323846;
  const double l = std::log1p(-y * y);
  const double h = 2 / (kPi * kA) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(h * h - l / kA) - h), y);
  for (int i = 0; i < 3; ++i) {
    // Far out the complement keeps the digits that 1 - erf would lose.
    const double error =
        y > 0.5 ? (1 - y) - std::erfc(x) : (y < -0.5 ? std::erfc(-x) - (1 + y) : std::erf(x) - y);
    const double step = error / (2 / std::sqrt(kPi) * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return x;
}

// The same for erfc on (0, 2), exact also where 1 - y would be 1.
inline double inverse_erfc(double y) {
  if (y > 1e-3 && y < 2) return inverse_erf(1 - y);
  if (!(y > 0)) {
    return y == 0 ? std::numeric_limits<double>::infinity()
                  : std::numeric_limits<double>::quiet_NaN();
  }
  if (y >= 2) {
    return y == 2 ? -std::numeric_limits<double>::infinity()
                  : std::numeric_limits<double>::quiet_NaN();
  }
  double x = std::sqrt(-std::log(y * std::sqrt(3.14159265358979323846 * -std::log(y))));
  for (int i = 0; i < 5; ++i) {
    const double step = (std::erfc(x) - y) / (-1.12837916709551257390 * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return x;
}

}  // namespace musa::host

inline double erfinv(double x) { return ::musa::host::inverse_erf(x); }
inline float erfinvf(float x) { return static_cast<float>(::musa::host::inverse_erf(x)); }
inline double erfcinv(double x) { return ::musa::host::inverse_erfc(x); }
inline float erfcinvf(float x) { return static_cast<float>(::musa::host::inverse_erfc(x)); }
inline double normcdfinv(double p) {
  return -1.41421356237309504880 * ::musa::host::inverse_erfc(2 * p);
}
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }
inline double erfcx(double x) {
  // exp(x^2) overflows where erfc vanishes: there the first terms of the asymptotic series do.
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  const double inverse = 1 / (2 * x * x);
  return 0.56418958354775628695 / x *
         (1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse))));
}
inline float erfcxf(float x) { return static_cast<float>(erfcx(x)); }

// ---- intrinsics on reals
// -------------------------------------------------------------------------

inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) {
  return static_cast<float>(std::pow(10.0, static_cast<double>(x)));
}
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }

// ---- conversions
// ---------------------------------------------------------------------------------

namespace musa::host {

// As the device's: not a number becomes 0, what is out of range the nearest end.
template <typename To, typename From>
To to_integer(From rounded) {
  if (rounded != rounded) return 0;
  // The ends of To, as From; 2^n is exact in either.
  const From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (rounded >= above) return std::numeric_limits<To>::max();
  if (std::is_signed_v<To> ? rounded < -above : rounded < From(0)) {
    return std::numeric_limits<To>::min();
  }
  return static_cast<To>(rounded);
}

}  // namespace musa::host

#define MUSA_HOST_TO_INTEGER(FROM, NAME, TO, TYPE)            \
  inline TYPE __##NAME##2##TO##_rn(FROM x) {                  \
    return ::musa::host::to_integer<TYPE>(std::nearbyint(x)); \
  }                                                           \
  inline TYPE __##NAME##2##TO##_rz(FROM x) {                  \
    return ::musa::host::to_integer<TYPE>(std::trunc(x));     \
  }                                                           \
  inline TYPE __##NAME##2##TO##_ru(FROM x) {                  \
    return ::musa::host::to_integer<TYPE>(std::ceil(x));      \
  }                                                           \
  inline TYPE __##NAME##2##TO##_rd(FROM x) { return ::musa::host::to_integer<TYPE>(std::floor(x)); }
MUSA_HOST_TO_INTEGER(float, float, int, int)
MUSA_HOST_TO_INTEGER(float, float, uint, unsigned int)
MUSA_HOST_TO_INTEGER(float, float, ll, long long)
MUSA_HOST_TO_INTEGER(float, float, ull, unsigned long long)
MUSA_HOST_TO_INTEGER(double, double, int, int)
MUSA_HOST_TO_INTEGER(double, double, uint, unsigned int)
MUSA_HOST_TO_INTEGER(double, double, ll, long long)
MUSA_HOST_TO_INTEGER(double, double, ull, unsigned long long)
#undef MUSA_HOST_TO_INTEGER

inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned int x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned int x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned int __float_as_uint(float x) { return std::bit_cast<unsigned int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(std::bit_cast<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(std::bit_cast<uint64_t>(x)); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>((static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32) |
                               static_cast<uint32_t>(low));
}

// ---- integers
// ------------------------------------------------------------------------------------

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned int>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned int __brev(unsigned int x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(static_cast<unsigned int>(x))) << 32) |
         __brev(static_cast<unsigned int>(x >> 32));
}
inline int __mul24(int x, int y) {
  return static_cast<int>(static_cast<unsigned int>(x << 8 >> 8) *
                          static_cast<unsigned int>(y << 8 >> 8));
}
inline unsigned int __umul24(unsigned int x, unsigned int y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}
inline int __mulhi(int x, int y) { return static_cast<int>((int64_t{x} * y) >> 32); }
inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>((uint64_t{x} * y) >> 32);
}
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>((static_cast<__int128>(x) * y) >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}
inline unsigned int __sad(int x, int y, unsigned int z) {
  return z + static_cast<unsigned int>(x < y ? int64_t{y} - x : int64_t{x} - y);
}
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
  return z + (x < y ? y - x : x - y);
}
// Bytes of (y, x), chosen by the low three bits of each half byte of `selector`; the fourth bit
// spreads the byte's sign.
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const uint64_t bytes = (static_cast<uint64_t>(y) << 32) | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned int choice = selector >> (4 * i);
    const auto byte = static_cast<unsigned int>(bytes >> (8 * (choice & 7))) & 0xffu;
    result |= ((choice & 8) != 0 ? (byte & 0x80u ? 0xffu : 0u) : byte) << (8 * i);
  }
  return result;
}
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>(((static_cast<uint64_t>(high) << 32 | low) << (shift & 31)) >>
                                   32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  }
  return c;
}

// min and max stand in the global namespace there, for every pair of arithmetic types.
#define MUSA_HOST_MINMAX(T)                        \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
MUSA_HOST_MINMAX(int)
MUSA_HOST_MINMAX(unsigned int)
MUSA_HOST_MINMAX(long)
MUSA_HOST_MINMAX(unsigned long)
MUSA_HOST_MINMAX(long long)
MUSA_HOST_MINMAX(unsigned long long)
#undef MUSA_HOST_MINMAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

// ---- memory and time
// -----------------------------------------------------------------------------

// Loads and stores through a chosen cache: plain ones here.
#define MUSA_HOST_CACHED(NAME, STORE)                           \
  template <typename T>                                         \
  T __ld##NAME(const T* address) {                              \
    return *address;                                            \
  }                                                             \
  template <typename T>                                         \
  void __st##STORE(T* address, std::type_identity_t<T> value) { \
    *address = value;                                           \
  }
MUSA_HOST_CACHED(g, wb)
MUSA_HOST_CACHED(cg, cg)
MUSA_HOST_CACHED(cs, cs)
MUSA_HOST_CACHED(cv, wt)
#undef MUSA_HOST_CACHED
template <typename T>
T __ldca(const T* address) {
  return *address;
}

// Nanoseconds, not cycles: differences between readings are what kernels use. clock() is C's.
inline long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}
inline long long wall_clock64() { return clock64(); }
inline void __nanosleep(unsigned int nanoseconds) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  ::musa::host::take_turns();  // who sleeps in a loop waits for somebody
}
