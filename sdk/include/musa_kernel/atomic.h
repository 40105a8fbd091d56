// Atomic functions: each returns the value before. Blocks run on several cores, so these are the
// machine's atomics; types it has none for go through compare and swap.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine.h"

namespace musa::host {

template <size_t kBytes>
struct Word;
template <>
struct Word<2> {
  using type = uint16_t;
};
template <>
struct Word<4> {
  using type = uint32_t;
};
template <>
struct Word<8> {
  using type = uint64_t;
};

// *address = op(*address), in one step as others see it.
template <typename T, typename Op>
T atomic_update(T* address, const Op& op) {
  count_atomic();
  using W = typename Word<sizeof(T)>::type;
  auto* word = reinterpret_cast<W*>(address);
  W seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    T before;
    std::memcpy(static_cast<void*>(&before), &seen, sizeof(T));
    const T after = op(before);
    W wanted;
    std::memcpy(&wanted, static_cast<const void*>(&after), sizeof(T));
    if (__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      return before;
    }
  }
}

template <typename T>
T atomic_exchange(T* address, T value) {
  count_atomic();
  using W = typename Word<sizeof(T)>::type;
  W wanted;
  std::memcpy(&wanted, static_cast<const void*>(&value), sizeof(T));
  const W seen = __atomic_exchange_n(reinterpret_cast<W*>(address), wanted, __ATOMIC_ACQ_REL);
  T before;
  std::memcpy(static_cast<void*>(&before), &seen, sizeof(T));
  return before;
}

}  // namespace musa::host

// Of 64 bits only unsigned ones, as in CUDA: PyTorch's headers declare the signed one themselves.
#define MUSA_HOST_ATOMIC_SUM(T)                                  \
  inline T atomicAdd(T* address, T value) {                      \
    ::musa::host::count_atomic();                                \
    return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL); \
  }                                                              \
  inline T atomicSub(T* address, T value) {                      \
    ::musa::host::count_atomic();                                \
    return __atomic_fetch_sub(address, value, __ATOMIC_ACQ_REL); \
  }
MUSA_HOST_ATOMIC_SUM(int)
MUSA_HOST_ATOMIC_SUM(unsigned int)
MUSA_HOST_ATOMIC_SUM(unsigned long)
MUSA_HOST_ATOMIC_SUM(unsigned long long)
#undef MUSA_HOST_ATOMIC_SUM

#define MUSA_HOST_ATOMIC_INTEGER(T)                                                           \
  inline T atomicAnd(T* address, T value) {                                                   \
    ::musa::host::count_atomic();                                                             \
    return __atomic_fetch_and(address, value, __ATOMIC_ACQ_REL);                              \
  }                                                                                           \
  inline T atomicOr(T* address, T value) {                                                    \
    ::musa::host::count_atomic();                                                             \
    return __atomic_fetch_or(address, value, __ATOMIC_ACQ_REL);                               \
  }                                                                                           \
  inline T atomicXor(T* address, T value) {                                                   \
    ::musa::host::count_atomic();                                                             \
    return __atomic_fetch_xor(address, value, __ATOMIC_ACQ_REL);                              \
  }                                                                                           \
  inline T atomicMin(T* address, T value) {                                                   \
    return ::musa::host::atomic_update(address,                                               \
                                       [value](T old) { return value < old ? value : old; }); \
  }                                                                                           \
  inline T atomicMax(T* address, T value) {                                                   \
    return ::musa::host::atomic_update(address,                                               \
                                       [value](T old) { return old < value ? value : old; }); \
  }                                                                                           \
  inline T atomicExch(T* address, T value) {                                                  \
    return ::musa::host::atomic_exchange(address, value);                                     \
  }                                                                                           \
  inline T atomicCAS(T* address, T compare, T value) {                                        \
    ::musa::host::count_atomic();                                                             \
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_ACQ_REL,            \
                                __ATOMIC_ACQUIRE);                                            \
    return compare;                                                                           \
  }
MUSA_HOST_ATOMIC_INTEGER(int)
MUSA_HOST_ATOMIC_INTEGER(unsigned int)
MUSA_HOST_ATOMIC_INTEGER(long)
MUSA_HOST_ATOMIC_INTEGER(unsigned long)
MUSA_HOST_ATOMIC_INTEGER(long long)
MUSA_HOST_ATOMIC_INTEGER(unsigned long long)
#undef MUSA_HOST_ATOMIC_INTEGER

inline unsigned short atomicCAS(unsigned short* address, unsigned short compare,
                                unsigned short value) {
  ::musa::host::count_atomic();
  __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return compare;
}

#define MUSA_HOST_ATOMIC_REAL(T)                                                         \
  inline T atomicAdd(T* address, T value) {                                              \
    return ::musa::host::atomic_update(address, [value](T old) { return old + value; }); \
  }                                                                                      \
  inline T atomicExch(T* address, T value) { return ::musa::host::atomic_exchange(address, value); }
MUSA_HOST_ATOMIC_REAL(float)
MUSA_HOST_ATOMIC_REAL(double)
#undef MUSA_HOST_ATOMIC_REAL

// (old >= limit ? 0 : old + 1), and the reverse.
inline unsigned int atomicInc(unsigned int* address, unsigned int limit) {
  return ::musa::host::atomic_update(
      address, [limit](unsigned int old) { return old >= limit ? 0 : old + 1; });
}
inline unsigned int atomicDec(unsigned int* address, unsigned int limit) {
  return ::musa::host::atomic_update(
      address, [limit](unsigned int old) { return old == 0 || old > limit ? limit : old - 1; });
}

// Of the block, of the system: the same here.
template <typename T>
T atomicAdd_block(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}
template <typename T>
T atomicAdd_system(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}
