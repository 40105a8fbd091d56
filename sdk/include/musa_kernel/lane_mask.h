// Sets of lanes of a warp.
//
// A warp has 32 or 128 lanes, by the profile, which is known only when the program runs. Masks that
// kernels pass are integers, as CUDA's; 0xffffffff (or 64 ones) names every lane also where there
// are 128: torch_musa's own kernels pass that on warps of 128. What a ballot returns need not fit
// an integer, so it is a LaneMask. It converts to integers, and where bits would be lost the kernel
// fails: a kernel that keeps a ballot in an unsigned int is right on mp_31 alone.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

#include "engine.h"

namespace musa {

template <typename T>
concept MaskInteger = std::integral<T> && !std::same_as<T, bool>;

class LaneMask {
 public:
  using Bits = unsigned __int128;

  constexpr LaneMask() = default;
  template <MaskInteger T>
  constexpr LaneMask(T value) : bits_(static_cast<std::make_unsigned_t<T>>(value)) {}
  static constexpr LaneMask of(Bits bits) {
    LaneMask mask;
    mask.bits_ = bits;
    return mask;
  }
  static constexpr LaneMask lane(int index) { return of(Bits{1} << index); }
  // The lanes below `count`.
  static constexpr LaneMask first(int count) {
    return of(count >= 128 ? ~Bits{0} : (Bits{1} << count) - 1);
  }

  constexpr Bits bits() const { return bits_; }
  constexpr bool has(int index) const { return (bits_ >> index & 1) != 0; }
  constexpr int count() const { return __builtin_popcountll(low()) + __builtin_popcountll(high()); }
  // The lowest lane, -1 where there is none.
  constexpr int lowest() const {
    return low() != 0 ? __builtin_ctzll(low()) : high() != 0 ? 64 + __builtin_ctzll(high()) : -1;
  }
  constexpr int highest() const {
    return high() != 0  ? 127 - __builtin_clzll(high())
           : low() != 0 ? 63 - __builtin_clzll(low())
                        : -1;
  }

  constexpr explicit operator bool() const { return bits_ != 0; }
  template <MaskInteger T>
  constexpr operator T() const {
    if (sizeof(T) < sizeof(Bits) && (bits_ >> (8 * sizeof(T))) != 0) {
      host::kernel_fault(musaErrorLaunchFailure,
                         "a ballot with lanes beyond an integer's bits was put into that integer; "
                         "warps of this profile have 128 lanes: keep it in `auto`");
    }
    return static_cast<T>(bits_);
  }

  friend constexpr LaneMask operator&(LaneMask a, LaneMask b) { return of(a.bits_ & b.bits_); }
  friend constexpr LaneMask operator|(LaneMask a, LaneMask b) { return of(a.bits_ | b.bits_); }
  friend constexpr LaneMask operator^(LaneMask a, LaneMask b) { return of(a.bits_ ^ b.bits_); }
  friend constexpr bool operator==(LaneMask a, LaneMask b) { return a.bits_ == b.bits_; }
  // Exact matches for integers, which could otherwise convert either way. An integer of all ones
  // means every lane (see above).
#define MUSA_LANE_MASK_MIXED(OP, RESULT)                 \
  template <MaskInteger T>                               \
  friend constexpr RESULT operator OP(LaneMask a, T b) { \
    return a OP LaneMask(b);                             \
  }                                                      \
  template <MaskInteger T>                               \
  friend constexpr RESULT operator OP(T a, LaneMask b) { \
    return LaneMask(a) OP b;                             \
  }
  MUSA_LANE_MASK_MIXED(&, LaneMask)
  MUSA_LANE_MASK_MIXED(|, LaneMask)
  MUSA_LANE_MASK_MIXED(^, LaneMask)
#undef MUSA_LANE_MASK_MIXED
  template <MaskInteger T>
  friend constexpr bool operator==(LaneMask a, T b) {
    return a == LaneMask(b);
  }
  constexpr LaneMask operator~() const { return of(~bits_); }
  template <MaskInteger T>
  constexpr LaneMask operator<<(T n) const {
    return of(n >= T{0} && static_cast<uint64_t>(n) < 128 ? bits_ << n : Bits{0});
  }
  template <MaskInteger T>
  constexpr LaneMask operator>>(T n) const {
    return of(n >= T{0} && static_cast<uint64_t>(n) < 128 ? bits_ >> n : Bits{0});
  }
  constexpr LaneMask& operator&=(LaneMask b) { return *this = *this & b; }
  constexpr LaneMask& operator|=(LaneMask b) { return *this = *this | b; }
  constexpr LaneMask& operator^=(LaneMask b) { return *this = *this ^ b; }

 private:
  constexpr uint64_t low() const { return static_cast<uint64_t>(bits_); }
  constexpr uint64_t high() const { return static_cast<uint64_t>(bits_ >> 64); }

  Bits bits_ = 0;
};

}  // namespace musa
