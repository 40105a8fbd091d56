// The regularized incomplete gamma functions P(a, x) and Q(a, x), on the host and in kernels.
//
// What is computed where, for a below 12: the power series of P to the left of x = a, the continued
// fraction of Q to the right of it, and a series of its own for Q where a and x are small. From 12
// on: Temme's uniform expansion, and beyond its reach the same series and fraction, which are short
// there. So no loop takes more than about 120 steps, whatever a is. Each way gives P or Q,
// whichever is the small one; the other one is what is left of 1.
//
// "DLMF" is the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace at::native {
namespace incomplete_gamma {

enum class Tail { kLower, kUpper };

// From here on a is large: the uniform expansion has all of a double's digits (its smallest term is
// about exp(-2 pi a)), and Stirling's series has them in seven terms.
constexpr int kLargeParameter = 12;
// Far more steps than any series or fraction here takes; it only bounds the loops.
constexpr int kMaxSteps = 500;

template <typename T>
constexpr bool kIsFloat = std::is_same_v<T, float>;

// exp(-kVanishes<T>) is zero.
template <typename T>
constexpr T kVanishes = kIsFloat<T> ? T(104) : T(746);

// A number of twice the precision: high + low, where low is below half a unit of high's last place.
template <typename T>
struct Pair {
  T high;
  T low;
};

// The sum and its rounding error, which is a number of type T (Knuth, The Art of Computer
// Programming, volume 2, 4.2.2, theorem B).
template <typename T>
__host__ __device__ inline Pair<T> sum_of(T a, T b) {
  const T sum = a + b;
  const T part_of_b = sum - a;
  return {sum, (a - (sum - part_of_b)) + (b - part_of_b)};
}

template <typename T>
__host__ __device__ inline Pair<T> sum_of(Pair<T> a, Pair<T> b) {
  const Pair<T> sum = sum_of(a.high, b.high);
  return sum_of(sum.high, sum.low + (a.low + b.low));
}

template <typename T>
__host__ __device__ inline Pair<T> product_of(Pair<T> a, T b) {
  const T product = a.high * b;
  return {product, std::fma(a.high, b, -product) + a.low * b};
}

// The coefficients d_n of eta / mu in powers of eta, where mu = x / a - 1 and, with mu's sign,
// eta^2 / 2 = mu - log(1 + mu) (DLMF 8.12.1). By differentiation mu mu' = eta (1 + mu), so that
// eta / mu = mu' - eta and, for mu = sum of alpha_n eta^n,
//   d_n = (n + 1) alpha_(n+1), less 1 where n = 1; alpha_1 = 1,
//   (n + 1) alpha_n = alpha_(n-1) - sum over 1 < j < n of j alpha_j alpha_(n+1-j).
template <typename T>
__host__ __device__ inline T uniform_coefficient(int n) {
  static constexpr T kCoefficients[] = {
      T(1),
      T(-0.333333333333333333333),
      T(0.0833333333333333333333),
      T(-0.0148148148148148148148),
      T(0.00115740740740740740741),
      T(0.000352733686067019400353),
      T(-0.0001787551440329218107),
      T(0.000039192631785224377817),
      T(-0.00000218544851067999216147),
      T(-0.0000018540622107151599607),
      T(8.29671134095308600502e-7),
      T(-1.76659527368260793044e-7),
      T(6.70785354340149858037e-9),
      T(1.02618097842403080426e-8),
      T(-4.38203601845335318655e-9),
      T(9.14769958223679023418e-10),
      T(-2.55141939949462497669e-11),
      T(-5.83077213255042506746e-11),
      T(2.43619480206674162437e-11),
      T(-5.02766928011417558909e-12),
      T(1.10043920319561347708e-13),
      T(3.37176326240098537883e-13),
      T(-1.39238872241816206592e-13),
      T(2.8534893807047443204e-14),
      T(-5.13911183424257261899e-16),
      T(-1.97522882943494428354e-15),
      T(8.09952115670456133407e-16),
      T(-1.65225312163981618192e-16),
      T(2.53054300974788842327e-18),
      T(1.16869397385595765888e-17),
      T(-4.77003704982048475822e-18),
  };
  return kCoefficients[n];
}

// 1 / Gamma(1 + z) - 1 for z in [0, 1], to full precision near 0: the power series of DLMF 5.7.1,
// whose coefficients fall faster than any power.
template <typename T>
__host__ __device__ inline T reciprocal_gamma_1p_minus_1(T z) {
  static constexpr T kCoefficients[] = {
      T(0.577215664901532860607),      T(-0.655878071520253881077),
      T(-0.042002635034095235529),     T(0.166538611382291489502),
      T(-0.0421977345555443367482),    T(-0.00962197152787697356211),
      T(0.0072189432466630995424),     T(-0.00116516759185906511211),
      T(-0.000215241674114950972816),  T(0.000128050282388116186153),
      T(-0.0000201348547807882386557), T(-0.00000125049348214267065735),
      T(0.00000113302723198169588237), T(-2.05633841697760710345e-7),
      T(6.11609510448141581786e-9),    T(5.00200764446922293006e-9),
      T(-1.18127457048702014459e-9),   T(1.04342671169110051049e-10),
      T(7.78226343990507125405e-12),   T(-3.69680561864220570819e-12),
      T(5.10037028745447597902e-13),   T(-2.05832605356650678322e-14),
      T(-5.34812253942301798237e-15),  T(1.22677862823826079016e-15),
      T(-1.18125930169745876951e-16),  T(1.18669225475160033258e-18),
  };
  T sum = 0;
  for (int n = kIsFloat<T> ? 15 : 25; n >= 0; --n) {
    sum = sum * z + kCoefficients[n];
  }
  return sum * z;
}

// 1 / Gamma(a + 1) for 0 < a < 12: Gamma(z + 1) = z Gamma(z) down to [0, 1) (DLMF 5.5.1).
template <typename T>
__host__ __device__ inline T reciprocal_gamma_1p(T a) {
  T factors = 1;
  while (a >= 1) {
    factors *= a;
    a -= 1;
  }
  return (1 + reciprocal_gamma_1p_minus_1(a)) / factors;
}

// Gamma(a) over sqrt(2 pi / a) (a / e)^a, for large a: Stirling's series (DLMF 5.11.1).
template <typename T>
__host__ __device__ inline T scaled_gamma(T a) {
  const T w = 1 / (a * a);
  T sum = T(1) / 156;
  sum = sum * w - T(691) / 360360;
  sum = sum * w + T(1) / 1188;
  sum = sum * w - T(1) / 1680;
  sum = sum * w + T(1) / 1260;
  sum = sum * w - T(1) / 360;
  sum = sum * w + T(1) / 12;
  return std::exp(sum / a);
}

// The sum of x^k / ((a + 1) (a + 2) ... (a + k)) over k from 0: P(a, x) Gamma(a + 1) e^x / x^a
// (DLMF 8.7.1 with 8.2.6).
template <typename T>
__host__ __device__ inline T lower_series(T a, T x) {
  T term = 1;
  T sum = 0;  // without the first term, so that few of its digits are lost
  for (int k = 1; k < kMaxSteps; ++k) {
    term *= x / (a + k);
    sum += term;
    if (term <= sum * std::numeric_limits<T>::epsilon() / 4) {
      break;
    }
  }
  return 1 + sum;
}

// Gamma(a, z) e^z / z^a for z > a: the contraction of DLMF 8.9.2,
//   1 / (b_0 - 1 (1 - a) / (b_1 - 2 (2 - a) / (b_2 - ...))), b_n = z + 2 n + 1 - a,
// as a sum of the differences between convergents (Steed's algorithm, DLMF 3.10(iii)): what is
// rounded in a small difference does no harm.
template <typename T>
__host__ __device__ inline T upper_fraction(T a, T z) {
  T b = (z - a) + 1;
  T inverse = 1 / b;
  T difference = inverse;
  T sum = inverse;
  for (int n = 1; n < kMaxSteps; ++n) {
    b += 2;
    const T numerator = n * (n - a) * inverse;
    inverse = 1 / (b - numerator);
    difference *= numerator * inverse;
    sum += difference;
    if (std::fabs(difference) <= sum * std::numeric_limits<T>::epsilon() / 4) {
      break;
    }
  }
  return sum;
}

// x^a e^-x / Gamma(a + 1) for 0 < a < 12. The exponential is halved: its product with the power can
// be a normal number where it is none.
template <typename T>
__host__ __device__ inline T small_parameter_factor(T a, T x) {
  const T root = std::exp(-x / 2);
  return std::pow(x, a) * root * reciprocal_gamma_1p(a) * root;
}

// Q(a, x) for 0 < a <= 1 and x below 1, where P may be close to 1: with DLMF 8.7.1's second series,
// P = x^a / Gamma(a + 1) (1 + a sum of (-x)^k / (k! (a + k)) over k from 1), and 1 - P is put
// together from x^a - 1 and 1 / Gamma(a + 1) - 1.
template <typename T>
__host__ __device__ inline T small_upper_tail(T a, T x) {
  T power = 1;
  T sum = 0;
  for (int k = 1; k < kMaxSteps; ++k) {
    power *= -x / k;
    const T term = power / (a + k);
    sum += term;
    if (std::fabs(term) <= std::fabs(sum) * std::numeric_limits<T>::epsilon() / 4) {
      break;
    }
  }
  const T power_minus_1 = std::expm1(a * std::log(x));
  const T gamma_minus_1 = reciprocal_gamma_1p_minus_1(a);
  const T factor_minus_1 = power_minus_1 + gamma_minus_1 + power_minus_1 * gamma_minus_1;
  return -factor_minus_1 - a * (1 + factor_minus_1) * sum;
}

// a log(x / a) - (x - a), which is the logarithm of x^a e^-x over a^a e^-a, for a >= 12 and a
// result that is not far below -kVanishes. It goes through exp() and is as large as 700 there, so
// it needs more digits than T has.
//
// With s = (y - a) / (y + a), log(y / a) = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ... (DLMF 4.6.4), where
// y is x, or the 2^-k x nearest to a. Where y = x, the terms of first order in x - a cancel
// exactly: 2 a s - (x - a) = -(x - a) s.
template <typename T>
__host__ __device__ inline Pair<T> large_parameter_exponent(T a, T x) {
  const T ratio = x / a;
  const int k =
      ratio > T(0.7) && ratio < T(1.4) ? 0 : static_cast<int>(std::rint(std::log2(ratio)));
  const T y = std::ldexp(x, -k);
  // Halves, as y + a can be too large; y - a is exact (Sterbenz).
  const T difference = y / 2 - a / 2;
  const Pair<T> sum = sum_of(y / 2, a / 2);
  Pair<T> s{difference / sum.high, 0};
  s.low = (std::fma(-s.high, sum.high, difference) - s.high * sum.low) / sum.high;

  const T square = s.high * s.high;
  T series = 0;
  for (int n = kIsFloat<T> ? 5 : 11; n >= 1; --n) {
    series = series * square + T(2) / (2 * n + 1);
  }
  const T higher = a * s.high * square * series;
  if (k == 0) {
    return sum_of(product_of(s, a - x), Pair<T>{higher, 0});
  }
  // The part of log 2 that T holds, and the rest.
  constexpr Pair<T> kLog2 = kIsFloat<T>
                                ? Pair<T>{T(0.693147182464599609375), T(-1.904654299957768e-09)}
                                : Pair<T>{T(0.693147180559945309417), T(2.319046813846299558e-17)};
  const Pair<T> whole = product_of(product_of(kLog2, static_cast<T>(k)), a);
  const Pair<T> first_order = sum_of(product_of(s, 2 * a), sum_of(a, -x));
  return sum_of(sum_of(whole, first_order), Pair<T>{higher, 0});
}

// S(a, eta) of DLMF 8.12.3 and 8.12.4, by which P and Q differ from the error function there, over
// x^a e^-x / Gamma(a + 1): a polynomial, the sum of B_n eta^n.
//
// Putting Q = erfc(eta sqrt(a / 2)) / 2 + S into dQ/dx = -x^(a-1) e^-x / Gamma(a) and comparing
// powers of eta gives B_(n-1) = d_n + (n + 1) / a B_(n+1), where d_n are the coefficients of
// eta / mu. Downwards the recurrence is stable (Gil, Segura and Temme, SIAM Journal on Scientific
// Computing 34 (2012), compute S so).
template <typename T>
__host__ __device__ inline T uniform_remainder(T a, T eta) {
  const T inverse = 1 / a;
  T after_next = 0;
  T next = 0;
  T sum = 0;
  for (int n = kIsFloat<T> ? 16 : 30; n >= 1; --n) {
    const T coefficient = uniform_coefficient<T>(n) + (n + 1) * inverse * after_next;
    sum = sum * eta + coefficient;
    after_next = next;
    next = coefficient;
  }
  return sum;
}

// P(a, x) where x < a, else Q(a, x); for a >= 12.
template <typename T>
__host__ __device__ inline T large_parameter_tail(T a, T x) {
  constexpr T kSqrt2Pi = T(2.506628274631000502416);
  constexpr T kSqrtPi = T(1.772453850905516027298);
  const bool lower = x < a;
  // The exponent is less than -0.85 |difference * s|.
  const T s = (x / 2 - a / 2) / (x / 2 + a / 2);
  if ((x - a) * s > T(1.25) * kVanishes<T> || x / a < T(1e-30)) {
    return 0;
  }
  const Pair<T> exponent = large_parameter_exponent(a, x);
  const T leading = std::exp(exponent.high);
  const T power = leading + leading * exponent.low;
  const T factor = power / (kSqrt2Pi * std::sqrt(a) * scaled_gamma(a));
  const T square = std::fmax(-(exponent.high + exponent.low), T(0));  // a eta^2 / 2
  if (square >= a / 2) {
    return lower ? factor * lower_series(a, x) : factor * a * upper_fraction(a, x);
  }
  // erfc(y) is Q(1/2, y^2) (DLMF 7.11.2); far out, where erfc would magnify the rounding of y, the
  // exponential is the one that is here already.
  const T y = std::sqrt(square);
  const T half_erfc =
      square < 4 ? std::erfc(y) / 2 : power * y / (2 * kSqrtPi) * upper_fraction(T(0.5), square);
  const T eta = (lower ? -y : y) * std::sqrt(2 / a);
  const T remainder = factor * uniform_remainder(a, eta);
  return lower ? half_erfc - remainder : half_erfc + remainder;
}

// P or Q at the ends of their domain, and not-a-number outside of it, as on the CPU. False where
// the function is to be computed.
template <Tail kWanted, typename T>
__host__ __device__ inline bool at_the_ends(T a, T x, T& result) {
  constexpr T kNoNumber = std::numeric_limits<T>::quiet_NaN();
  constexpr T kAllLower = kWanted == Tail::kLower ? 1 : 0;  // P = 1, Q = 0
  constexpr T kAllUpper = 1 - kAllLower;
  if (x < 0 || a < 0) {
    result = kNoNumber;
  } else if (a == 0) {
    result = x > 0 ? kAllLower : kNoNumber;
  } else if (x == 0) {
    result = kAllUpper;
  } else if (std::isinf(a)) {
    result = std::isinf(x) ? kNoNumber : kAllUpper;
  } else if (std::isinf(x)) {
    result = kAllLower;
  } else if (std::isnan(a) || std::isnan(x)) {
    result = kNoNumber;
  } else {
    return false;
  }
  return true;
}

template <Tail kWanted, typename T>
__host__ __device__ inline T regularized(T a, T x) {
  static_assert(kIsFloat<T> || std::is_same_v<T, double>, "narrower types compute in float");
  T result;
  if (at_the_ends<kWanted>(a, x, result)) {
    return result;
  }
  constexpr bool kUpper = kWanted == Tail::kUpper;
  bool have_upper;
  if (a >= kLargeParameter) {
    have_upper = x >= a;
    result = large_parameter_tail(a, x);
  } else if (x > a && x > (kUpper ? T(0.75) : T(1.1))) {
    have_upper = true;
    result = x > 2 * kVanishes<T> ? T(0) : small_parameter_factor(a, x) * a * upper_fraction(a, x);
  } else if (kUpper && a <= 1 && x <= T(0.75)) {
    have_upper = true;
    result = small_upper_tail(a, x);
  } else {
    have_upper = false;
    result = small_parameter_factor(a, x) * lower_series(a, x);
  }
  result = std::fmin(result, T(1));  // rounded up, it can be past it
  return have_upper == kUpper ? result : 1 - result;
}

}  // namespace incomplete_gamma

/// P(a, x), the regularized lower incomplete gamma function (DLMF 8.2.4), of two floats or two
/// doubles; relative errors stay within a few units of the last place, far in the tail too.
/// Not-a-number for a negative argument and for a = x = 0.
template <typename T>
__host__ __device__ inline T regularized_lower_gamma(T a, T x) {
  return incomplete_gamma::regularized<incomplete_gamma::Tail::kLower>(a, x);
}

/// Q(a, x) = 1 - P(a, x), the regularized upper incomplete gamma function, likewise.
template <typename T>
__host__ __device__ inline T regularized_upper_gamma(T a, T x) {
  return incomplete_gamma::regularized<incomplete_gamma::Tail::kUpper>(a, x);
}

}  // namespace at::native
