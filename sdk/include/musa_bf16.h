// __mt_bfloat16: float's upper half, with conversions, arithmetic and mathematics. For host code
// and kernels. Devices below mp_22 have no such type (see MUSA_ARCH).
#pragma once

#include "musa_kernel/atomic.h"
#include "musa_kernel/math.h"
#include "musa_kernel/small_float.h"
#include "musa_vector_types.h"

MUSA_HOST_SMALL_FLOAT(__mt_bfloat16, ::musa::host::BfloatFormat)
using mt_bfloat16 = __mt_bfloat16;
using mt_bfloat162 = __mt_bfloat162;

inline __mt_bfloat16 __float2bfloat16(float x) { return __mt_bfloat16(x); }
inline __mt_bfloat16 __float2bfloat16_rn(float x) { return __mt_bfloat16(x); }
MUSA_HOST_ROUNDED(__mt_bfloat16, __float2bfloat16)
inline float __bfloat162float(__mt_bfloat16 x) { return float(x); }
inline __mt_bfloat16 __double2bfloat16(double x) { return __mt_bfloat16(x); }
inline __mt_bfloat162 __float2bfloat162_rn(float x) { return {__mt_bfloat16(x), __mt_bfloat16(x)}; }
inline __mt_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__mt_bfloat16(x), __mt_bfloat16(y)};
}
inline __mt_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__mt_bfloat16(v.x), __mt_bfloat16(v.y)};
}
inline float2 __bfloat1622float2(__mt_bfloat162 v) { return {float(v.x), float(v.y)}; }
inline __mt_bfloat162 __bfloat162bfloat162(__mt_bfloat16 x) { return {x, x}; }
inline __mt_bfloat162 __halves2bfloat162(__mt_bfloat16 x, __mt_bfloat16 y) { return {x, y}; }
inline __mt_bfloat16 __low2bfloat16(__mt_bfloat162 v) { return v.x; }
inline __mt_bfloat16 __high2bfloat16(__mt_bfloat162 v) { return v.y; }
inline short __bfloat16_as_short(__mt_bfloat16 x) { return static_cast<short>(x.bits); }
inline unsigned short __bfloat16_as_ushort(__mt_bfloat16 x) { return x.bits; }
inline __mt_bfloat16 __short_as_bfloat16(short x) {
  return __mt_bfloat16::from_bits(static_cast<uint16_t>(x));
}
inline __mt_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __mt_bfloat16::from_bits(x); }
inline int __bfloat162int_rn(__mt_bfloat16 x) { return __float2int_rn(float(x)); }
inline int __bfloat162int_rz(__mt_bfloat16 x) { return __float2int_rz(float(x)); }
inline __mt_bfloat16 __int2bfloat16_rn(int x) { return __double2bfloat16(x); }

MUSA_HOST_SMALL_FUNCTIONS(__mt_bfloat16, __mt_bfloat162)
