// Warp operations: shuffles, votes, matches, reductions. What masks are: lane_mask.h.
#pragma once

#include <cstring>
#include <source_location>
#include <type_traits>

#include "index.h"
#include "lane_mask.h"

namespace musa::host {

inline int lane_index() {
  return static_cast<int>(((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) %
                          static_cast<unsigned int>(warpSize));
}

// ---- shuffles
// ------------------------------------------------------------------------------------

template <typename T>
struct Shuffled {
  T value;
  T result;
  int source;
};

// A lane that is not there gives no value: what comes back then is all ones, which shows.
template <typename T>
void complete_shuffle(void* const* payloads, int lanes) {
  for (int lane = 0; lane < lanes; ++lane) {
    if (payloads[lane] == nullptr) continue;
    auto& mine = *static_cast<Shuffled<T>*>(payloads[lane]);
    if (mine.source < lanes && payloads[mine.source] != nullptr) {
      mine.result = static_cast<Shuffled<T>*>(payloads[mine.source])->value;
    } else {
      std::memset(static_cast<void*>(&mine.result), 0xff, sizeof(T));
    }
  }
}

template <typename T>
T shuffle(const LaneMask& mask, T value, int source, const char* operation,
          const std::source_location& where) {
  static_assert(std::is_trivially_copyable_v<T>, "shuffles move plain data");
  Shuffled<T> payload{value, value, source};
  warp_meeting(mask, &payload, &complete_shuffle<T>, operation, where);
  return payload.result;
}

// The first lane of the segment of `width` lanes that `lane` lies in. A width is a power of two.
inline int segment(int lane, int width) {
  if (width <= 0 || width > warpSize || (width & (width - 1)) != 0) {
    kernel_fault(musaErrorLaunchFailure,
                 "a shuffle's width has to be a power of two up to warpSize");
  }
  return lane / width * width;
}

// ---- votes and other answers of the whole warp -----------------------------------------------

struct Ballot {
  bool predicate;
  LaneMask yes;
  LaneMask there;
};

inline void complete_ballot(void* const* payloads, int lanes) {
  LaneMask yes;
  LaneMask there;
  for (int lane = 0; lane < lanes; ++lane) {
    if (payloads[lane] == nullptr) continue;
    there |= LaneMask::lane(lane);
    if (static_cast<Ballot*>(payloads[lane])->predicate) yes |= LaneMask::lane(lane);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    if (payloads[lane] == nullptr) continue;
    static_cast<Ballot*>(payloads[lane])->yes = yes;
    static_cast<Ballot*>(payloads[lane])->there = there;
  }
}

inline Ballot ballot(const LaneMask& mask, bool predicate, const char* operation,
                     const std::source_location& where) {
  Ballot payload{predicate, LaneMask(), LaneMask()};
  warp_meeting(mask, &payload, &complete_ballot, operation, where);
  return payload;
}

inline void complete_nothing(void* const*, int) {}

template <typename T>
struct Matched {
  T value;
  LaneMask equal;
};

template <typename T>
void complete_match(void* const* payloads, int lanes) {
  for (int lane = 0; lane < lanes; ++lane) {
    if (payloads[lane] == nullptr) continue;
    auto& mine = *static_cast<Matched<T>*>(payloads[lane]);
    for (int other = 0; other < lanes; ++other) {
      if (payloads[other] != nullptr &&
          std::memcmp(&static_cast<Matched<T>*>(payloads[other])->value, &mine.value, sizeof(T)) ==
              0) {
        mine.equal |= LaneMask::lane(other);
      }
    }
  }
}

template <typename T, typename Op>
void complete_reduction(void* const* payloads, int lanes) {
  T total{};
  bool any = false;
  for (int lane = 0; lane < lanes; ++lane) {
    if (payloads[lane] == nullptr) continue;
    const T value = *static_cast<T*>(payloads[lane]);
    total = any ? Op()(total, value) : value;
    any = true;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    if (payloads[lane] != nullptr) *static_cast<T*>(payloads[lane]) = total;
  }
}

template <typename Op, typename T>
T reduce_lanes(const LaneMask& mask, T value, const char* operation,
               const std::source_location& where) {
  warp_meeting(mask, &value, &complete_reduction<T, Op>, operation, where);
  return value;
}

}  // namespace musa::host

#define MUSA_HOST_HERE std::source_location where = std::source_location::current()

template <typename T>
T __shfl_sync(::musa::LaneMask mask, T value, int source, int width = warpSize, MUSA_HOST_HERE) {
  const int first = ::musa::host::segment(::musa::host::lane_index(), width);
  return ::musa::host::shuffle(mask, value, first + (source & (width - 1)), "__shfl_sync", where);
}
template <typename T>
T __shfl_up_sync(::musa::LaneMask mask, T value, unsigned int delta, int width = warpSize,
                 MUSA_HOST_HERE) {
  const int lane = ::musa::host::lane_index();
  const int source = lane - static_cast<int>(delta);
  const bool inside = source >= ::musa::host::segment(lane, width);
  return ::musa::host::shuffle(mask, value, inside ? source : lane, "__shfl_up_sync", where);
}
template <typename T>
T __shfl_down_sync(::musa::LaneMask mask, T value, unsigned int delta, int width = warpSize,
                   MUSA_HOST_HERE) {
  const int lane = ::musa::host::lane_index();
  const int source = lane + static_cast<int>(delta);
  const bool inside = source < ::musa::host::segment(lane, width) + width;
  return ::musa::host::shuffle(mask, value, inside ? source : lane, "__shfl_down_sync", where);
}
template <typename T>
T __shfl_xor_sync(::musa::LaneMask mask, T value, int lane_mask, int width = warpSize,
                  MUSA_HOST_HERE) {
  const int lane = ::musa::host::lane_index();
  const int source = lane ^ lane_mask;
  // As CUDA's: a lane of an earlier segment may be read, one of a later one not.
  const bool inside = source >= 0 && source < ::musa::host::segment(lane, width) + width;
  return ::musa::host::shuffle(mask, value, inside ? source : lane, "__shfl_xor_sync", where);
}

inline void __syncwarp(::musa::LaneMask mask = 0xffffffffu, MUSA_HOST_HERE) {
  ::musa::host::warp_meeting(mask, nullptr, &::musa::host::complete_nothing, "__syncwarp", where);
}
inline ::musa::LaneMask __ballot_sync(::musa::LaneMask mask, int predicate, MUSA_HOST_HERE) {
  return ::musa::host::ballot(mask, predicate != 0, "__ballot_sync", where).yes;
}
inline int __any_sync(::musa::LaneMask mask, int predicate, MUSA_HOST_HERE) {
  return static_cast<bool>(::musa::host::ballot(mask, predicate != 0, "__any_sync", where).yes);
}
inline int __all_sync(::musa::LaneMask mask, int predicate, MUSA_HOST_HERE) {
  const auto votes = ::musa::host::ballot(mask, predicate != 0, "__all_sync", where);
  return votes.yes == votes.there;
}
inline ::musa::LaneMask __activemask(MUSA_HOST_HERE) {
  return ::musa::host::converged_lanes(where);
}
template <typename T>
::musa::LaneMask __match_any_sync(::musa::LaneMask mask, T value, MUSA_HOST_HERE) {
  ::musa::host::Matched<T> payload{value, ::musa::LaneMask()};
  ::musa::host::warp_meeting(mask, &payload, &::musa::host::complete_match<T>, "__match_any_sync",
                             where);
  return payload.equal;
}

// The forms without a mask, which CUDA has dropped: for the lanes that have come here together.
template <typename T>
T __shfl(T value, int source, int width = warpSize, MUSA_HOST_HERE) {
  return __shfl_sync(__activemask(where), value, source, width, where);
}
template <typename T>
T __shfl_up(T value, unsigned int delta, int width = warpSize, MUSA_HOST_HERE) {
  return __shfl_up_sync(__activemask(where), value, delta, width, where);
}
template <typename T>
T __shfl_down(T value, unsigned int delta, int width = warpSize, MUSA_HOST_HERE) {
  return __shfl_down_sync(__activemask(where), value, delta, width, where);
}
template <typename T>
T __shfl_xor(T value, int lane_mask, int width = warpSize, MUSA_HOST_HERE) {
  return __shfl_xor_sync(__activemask(where), value, lane_mask, width, where);
}
inline ::musa::LaneMask __ballot(int predicate, MUSA_HOST_HERE) {
  return __ballot_sync(__activemask(where), predicate, where);
}
inline int __any(int predicate, MUSA_HOST_HERE) {
  return __any_sync(__activemask(where), predicate, where);
}
inline int __all(int predicate, MUSA_HOST_HERE) {
  return __all_sync(__activemask(where), predicate, where);
}

namespace musa::host {
struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Most {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct BitAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct BitOr {
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct BitXor {
  template <typename T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
}  // namespace musa::host

#define MUSA_HOST_WARP_REDUCE(NAME, OP, T)                                          \
  inline T NAME(::musa::LaneMask mask, T value, MUSA_HOST_HERE) {                   \
    return ::musa::host::reduce_lanes<::musa::host::OP>(mask, value, #NAME, where); \
  }
MUSA_HOST_WARP_REDUCE(__reduce_add_sync, Add, int)
MUSA_HOST_WARP_REDUCE(__reduce_add_sync, Add, unsigned int)
MUSA_HOST_WARP_REDUCE(__reduce_min_sync, Least, int)
MUSA_HOST_WARP_REDUCE(__reduce_min_sync, Least, unsigned int)
MUSA_HOST_WARP_REDUCE(__reduce_max_sync, Most, int)
MUSA_HOST_WARP_REDUCE(__reduce_max_sync, Most, unsigned int)
MUSA_HOST_WARP_REDUCE(__reduce_and_sync, BitAnd, unsigned int)
MUSA_HOST_WARP_REDUCE(__reduce_or_sync, BitOr, unsigned int)
MUSA_HOST_WARP_REDUCE(__reduce_xor_sync, BitXor, unsigned int)
#undef MUSA_HOST_WARP_REDUCE
#undef MUSA_HOST_HERE

// Bits of a mask, as of an integer.
inline int __popc(const ::musa::LaneMask& mask) { return mask.count(); }
inline int __popcll(const ::musa::LaneMask& mask) { return mask.count(); }
inline int __ffs(const ::musa::LaneMask& mask) { return mask.lowest() + 1; }
inline int __ffsll(const ::musa::LaneMask& mask) { return mask.lowest() + 1; }
