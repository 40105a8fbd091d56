#include <ATen/native/musa/HostCast.h>
#include <ATen/native/musa/HostVectorMath.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e4m3fnuz.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Float8_e5m2fnuz.h>
#include <c10/util/Half.h>
#include <c10/util/TypeCast.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HOST_CAST_HAVE_F16C
#endif

namespace at::native::host_loops {
namespace {

using c10::ScalarType;

// Pairs of these types are compiled one by one. Every other type is defined by its conversion from
// and to one of them (Half(double) is Half(float(double)) in c10), so it takes two steps through a
// block that stays in the cache: a dozen extra loops instead of hundreds.
#define FORALL_CORE_TYPES(_)           \
  _(uint8_t, Byte)                     \
  _(int8_t, Char)                      \
  _(int16_t, Short)                    \
  _(int32_t, Int)                      \
  _(int64_t, Long)                     \
  _(uint16_t, UInt16)                  \
  _(uint32_t, UInt32)                  \
  _(uint64_t, UInt64)                  \
  _(bool, Bool)                        \
  _(float, Float)                      \
  _(double, Double)                    \
  _(c10::complex<float>, ComplexFloat) \
  _(c10::complex<double>, ComplexDouble)

// type, ScalarType, the core type it goes through
#define FORALL_STEPPING_TYPES(_)                         \
  _(c10::Half, Half, float, Float)                       \
  _(c10::BFloat16, BFloat16, float, Float)               \
  _(c10::Float8_e5m2, Float8_e5m2, float, Float)         \
  _(c10::Float8_e4m3fn, Float8_e4m3fn, float, Float)     \
  _(c10::Float8_e5m2fnuz, Float8_e5m2fnuz, float, Float) \
  _(c10::Float8_e4m3fnuz, Float8_e4m3fnuz, float, Float) \
  _(c10::complex<c10::Half>, ComplexHalf, c10::complex<float>, ComplexFloat)

template <typename To, typename From>
void run(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t n) {
  if (out_stride == sizeof(To) && in_stride == sizeof(From)) {
    To* to = reinterpret_cast<To*>(out);
    const From* from = reinterpret_cast<const From*>(in);
    for (int64_t i = 0; i < n; ++i) {
      to[i] = c10::convert<To>(from[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(out + i * out_stride) =
        c10::convert<To>(*reinterpret_cast<const From*>(in + i * in_stride));
  }
}

// The same for the pairs that half-precision work goes through all the time: compiled also for
// AVX2, and Half by the machine's own instructions.
template <typename To, typename From>
HOST_LOOPS_CLONES void convert_contiguous(To* to, const From* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = c10::convert<To>(from[i]);
  }
}

#ifdef HOST_CAST_HAVE_F16C
__attribute__((target("avx,f16c"))) void convert_f16c(float* to, const c10::Half* from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
  }
  for (; i < n; ++i) {
    to[i] = static_cast<float>(from[i]);
  }
}

__attribute__((target("avx,f16c"))) void convert_f16c(c10::Half* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
  }
  for (; i < n; ++i) {
    to[i] = static_cast<c10::Half>(from[i]);
  }
}
#endif

template <typename To, typename From>
void run_step(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t n) {
  if (out_stride != sizeof(To) || in_stride != sizeof(From)) {
    return run<To, From>(out, out_stride, in, in_stride, n);
  }
  To* to = reinterpret_cast<To*>(out);
  const From* from = reinterpret_cast<const From*>(in);
#ifdef HOST_CAST_HAVE_F16C
  if constexpr ((std::is_same_v<To, float> && std::is_same_v<From, c10::Half>) ||
                (std::is_same_v<To, c10::Half> && std::is_same_v<From, float>)) {
    static const bool has_f16c = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
    if (has_f16c) {
      return convert_f16c(to, from, n);
    }
  }
#endif
  convert_contiguous(to, from, n);
}

// A stored bool may be any byte; reading it as bool is undefined for bytes other than 0 and 1.
template <typename To>
void run_from_bool(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(out + i * out_stride) = c10::convert<To>(in[i * in_stride] != 0);
  }
}

template <typename To>
void run_from(ScalarType from, char* out, int64_t out_stride, const char* in, int64_t in_stride,
              int64_t n) {
  if (from == ScalarType::Bool) {
    return run_from_bool<To>(out, out_stride, in, in_stride, n);
  }
  switch (from) {
#define CASE(type, name) \
  case ScalarType::name: \
    return run<To, type>(out, out_stride, in, in_stride, n);
    FORALL_CORE_TYPES(CASE)
#undef CASE
    default:
      TORCH_INTERNAL_ASSERT(false, "no conversion from ", from);
  }
}

void run_core(ScalarType to, ScalarType from, char* out, int64_t out_stride, const char* in,
              int64_t in_stride, int64_t n) {
  switch (to) {
#define CASE(type, name) \
  case ScalarType::name: \
    return run_from<type>(from, out, out_stride, in, in_stride, n);
    FORALL_CORE_TYPES(CASE)
#undef CASE
    default:
      TORCH_INTERNAL_ASSERT(false, "no conversion to ", to);
  }
}

// The core type that `type` goes through; itself where it is one.
ScalarType core_of(ScalarType type) {
  switch (type) {
#define CASE(type, name, core, core_name) \
  case ScalarType::name:                  \
    return ScalarType::core_name;
    FORALL_STEPPING_TYPES(CASE)
#undef CASE
    default:
      return type;
  }
}

void to_core(ScalarType from, char* out, int64_t out_stride, const char* in, int64_t in_stride,
             int64_t n) {
  switch (from) {
#define CASE(type, name, core, core_name) \
  case ScalarType::name:                  \
    return run_step<core, type>(out, out_stride, in, in_stride, n);
    FORALL_STEPPING_TYPES(CASE)
#undef CASE
    default:
      TORCH_INTERNAL_ASSERT(false);
  }
}

void from_core(ScalarType to, char* out, int64_t out_stride, const char* in, int64_t in_stride,
               int64_t n) {
  switch (to) {
#define CASE(type, name, core, core_name) \
  case ScalarType::name:                  \
    return run_step<type, core>(out, out_stride, in, in_stride, n);
    FORALL_STEPPING_TYPES(CASE)
#undef CASE
    default:
      TORCH_INTERNAL_ASSERT(false);
  }
}

template <typename T>
void copy_same(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * out_stride, in + i * in_stride, sizeof(T));
  }
}

void run_same(size_t size, char* out, int64_t out_stride, const char* in, int64_t in_stride,
              int64_t n) {
  const auto step = static_cast<int64_t>(size);
  if (out_stride == step && in_stride == step) {
    std::memmove(out, in, static_cast<size_t>(n) * size);
    return;
  }
  switch (size) {
    case 1:
      return copy_same<char[1]>(out, out_stride, in, in_stride, n);
    case 2:
      return copy_same<char[2]>(out, out_stride, in, in_stride, n);
    case 4:
      return copy_same<char[4]>(out, out_stride, in, in_stride, n);
    case 8:
      return copy_same<char[8]>(out, out_stride, in, in_stride, n);
    case 16:
      return copy_same<char[16]>(out, out_stride, in, in_stride, n);
    default:
      TORCH_INTERNAL_ASSERT(false, "element size ", size);
  }
}

}  // namespace

bool is_castable(ScalarType type) {
  switch (type) {
#define CASE(type, name) case ScalarType::name:
    FORALL_CORE_TYPES(CASE)
#undef CASE
#define CASE(type, name, core, core_name) case ScalarType::name:
    FORALL_STEPPING_TYPES(CASE)
#undef CASE
    return true;
    default:
      return false;
  }
}

void cast_run(ScalarType to, char* out, int64_t out_stride, ScalarType from, const char* in,
              int64_t in_stride, int64_t n) {
  if (to == from) {
    return run_same(c10::elementSize(to), out, out_stride, in, in_stride, n);
  }
  const ScalarType core_to = core_of(to);
  const ScalarType core_from = core_of(from);
  if (core_to == to && core_from == from) {
    return run_core(to, from, out, out_stride, in, in_stride, n);
  }
  if (core_to == to && core_from == to) {
    return to_core(from, out, out_stride, in, in_stride, n);
  }
  if (core_from == from && core_to == from) {
    return from_core(to, out, out_stride, in, in_stride, n);
  }
  constexpr int64_t kBlock = 512;
  alignas(64) char first[kBlock * sizeof(c10::complex<double>)];
  alignas(64) char second[kBlock * sizeof(c10::complex<double>)];
  const auto from_size = static_cast<int64_t>(c10::elementSize(core_from));
  const auto to_size = static_cast<int64_t>(c10::elementSize(core_to));
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t count = std::min(kBlock, n - done);
    const char* source = in + done * in_stride;
    int64_t source_stride = in_stride;
    if (core_from != from) {
      to_core(from, first, from_size, source, source_stride, count);
      source = first;
      source_stride = from_size;
    }
    char* target = out + done * out_stride;
    if (core_to == to) {
      run_core(to, core_from, target, out_stride, source, source_stride, count);
      continue;
    }
    if (core_to != core_from) {
      run_core(core_to, core_from, second, to_size, source, source_stride, count);
      source = second;
      source_stride = to_size;
    }
    from_core(to, target, out_stride, source, source_stride, count);
  }
}

}  // namespace at::native::host_loops
