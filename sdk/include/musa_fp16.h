// __half: IEEE 754 binary16, with conversions, arithmetic and mathematics. For host code and
// kernels.
#pragma once

#include "musa_kernel/atomic.h"
#include "musa_kernel/math.h"
#include "musa_kernel/small_float.h"
#include "musa_vector_types.h"

MUSA_HOST_SMALL_FLOAT(__half, ::musa::host::HalfFormat)
using half = __half;
using half2 = __half2;

inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
MUSA_HOST_ROUNDED(__half, __float2half)
inline float __half2float(__half x) { return float(x); }
inline __half __double2half(double x) { return __half(x); }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline short __half_as_short(__half x) { return static_cast<short>(x.bits); }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __short_as_half(short x) { return __half::from_bits(static_cast<uint16_t>(x)); }
inline __half __ushort_as_half(unsigned short x) { return __half::from_bits(x); }
inline int __half2int_rn(__half x) { return __float2int_rn(float(x)); }
inline int __half2int_rz(__half x) { return __float2int_rz(float(x)); }
inline __half __int2half_rn(int x) { return __double2half(x); }
inline __half __uint2half_rn(unsigned int x) { return __double2half(x); }

MUSA_HOST_SMALL_FUNCTIONS(__half, __half2)
