// What kernels may say: barriers with votes, warp operations, atomics, 16-bit numbers, symbols,
// launches by pointer, the integer and real functions of the language.
#undef NDEBUG  // assertions are tested, too
#include <cassert>

#include <musa_bf16.h>
#include <musa_fp16.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <thread>

#include "kernel_testing.h"

namespace {

int lanes() {
  musaDeviceProp properties;
  CHECK_EQ(musaGetDeviceProperties(&properties, 0), musaSuccess);
  return properties.warpSize;
}

// ---- where a thread stands -----------------------------------------------------------------------

__global__ void count_visits(int* visits, int* sizes) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  atomicAdd(&visits[block * blockDim.x * blockDim.y * blockDim.z + thread], 1);
  __syncthreads();
  // The same place after a barrier as before.
  atomicAdd(&visits[block * blockDim.x * blockDim.y * blockDim.z +
                    (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x],
            1);
  if (thread == 0 && block == 0) sizes[0] = warpSize;
}

PROFILE_TEST(every_thread_of_a_grid_in_three_dimensions_runs_once) {
  const dim3 grid(3, 2, 4);
  const dim3 block(5, 3, 7);
  const OnDevice<int> visits(3 * 2 * 4 * 5 * 3 * 7);
  const OnDevice<int> sizes(1);
  count_visits<<<grid, block>>>(visits.get(), sizes.get());
  for (const int visit : visits.values()) CHECK_EQ(visit, 2);
  CHECK_EQ(sizes.value(), lanes());
}

// ---- barriers ------------------------------------------------------------------------------------

__global__ void vote_in_block(int* out) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 1000);
  const int not_all = __syncthreads_and(t != 7);
  const int some = __syncthreads_or(t == 99);
  const int none = __syncthreads_or(t > 1000);
  out[t] = count * 16 + all * 8 + not_all * 4 + some * 2 + none;
}

PROFILE_TEST(votes_at_a_barrier_reach_every_thread) {
  const OnDevice<int> out(100);
  vote_in_block<<<1, 100>>>(out.get());
  for (const int value : out.values()) CHECK_EQ(value, 34 * 16 + 8 + 0 + 2 + 0);
}

__device__ void rotate_once(int* ring) {
  const int next = ring[(threadIdx.x + 1) % blockDim.x];
  __syncthreads();
  ring[threadIdx.x] = next;
  __syncthreads();
}

__global__ void rotate(int* out, int times) {
  extern __shared__ int ring[];
  ring[threadIdx.x] = threadIdx.x;
  __syncthreads();
  for (int i = 0; i < times; ++i) rotate_once(ring);
  out[blockIdx.x * blockDim.x + threadIdx.x] = ring[threadIdx.x];
}

PROFILE_TEST(barriers_in_device_functions_and_loops) {
  const int threads = 1024;
  const OnDevice<int> out(8 * threads);
  rotate<<<8, threads, threads * sizeof(int)>>>(out.get(), 37);
  const std::vector<int> got = out.values();
  for (int i = 0; i < 8 * threads; ++i) CHECK_EQ(got[i], (i % threads + 37) % threads);
}

// Some blocks synchronise, others do not: a launch may mix them.
__global__ void sometimes(int* out) {
  __shared__ int first;
  if (blockIdx.x % 2 == 1) {
    if (threadIdx.x == 0) first = blockIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = first;
  } else {
    out[blockIdx.x * blockDim.x + threadIdx.x] = -1;
  }
}

PROFILE_TEST(blocks_with_and_without_barriers_in_one_launch) {
  const OnDevice<int> out(101 * 33);
  sometimes<<<101, 33>>>(out.get());
  const std::vector<int> got = out.values();
  for (int i = 0; i < 101 * 33; ++i) CHECK_EQ(got[i], i / 33 % 2 == 1 ? i / 33 : -1);
}

// ---- shared memory -------------------------------------------------------------------------------

template <typename T>
struct Pair {
  T first, second;
};

template <typename T, int kSize>
__global__ void many_kinds_of_shared(int* out) {
  __shared__ T array[kSize], *pointer;
  __shared__ Pair<T> pair;
  volatile __shared__ int flag;
  __shared__ __align__(64) unsigned char bytes[3];
  __shared__ union {
    float real;
    unsigned int bits;
  } both;
  extern __shared__ double reals[];
  if (threadIdx.x == 0) {
    pointer = array;
    pair = {T(3), T(4)};
    flag = reinterpret_cast<uintptr_t>(bytes) % 64 == 0;
    both.real = 1.0f;
  }
  array[threadIdx.x] = T(threadIdx.x);
  reals[threadIdx.x] = 0.5 * threadIdx.x;
  __syncthreads();
  const int other = kSize - 1 - threadIdx.x;
  out[threadIdx.x] = flag && both.bits == 0x3f800000u && pair.second == T(4)
                         ? static_cast<int>(pointer[other]) + static_cast<int>(2 * reals[other])
                         : -1;
}

PROFILE_TEST(shared_variables_of_every_kind) {
  const OnDevice<int> out(50);
  many_kinds_of_shared<short, 50><<<1, 50, 50 * sizeof(double)>>>(out.get());
  const std::vector<int> got = out.values();
  for (int i = 0; i < 50; ++i) CHECK_EQ(got[i], 2 * (49 - i));
}

__global__ void read_unset(unsigned int* out) {
  __shared__ unsigned int word;
  out[0] = word;
  word = 1;
}

TEST(shared_memory_begins_with_neither_zeros_nor_the_last_blocks_values) {
  const OnDevice<unsigned int> out(1);
  read_unset<<<5, 1>>>(out.get());
  CHECK(out.value() == 0xffffffffu);
}

// ---- warps ---------------------------------------------------------------------------------------

__global__ void shuffles(int* out, int width) {
  const int t = threadIdx.x;
  int* mine = out + 5 * t;
  mine[0] = __shfl_sync(0xffffffff, t, 3, width);
  mine[1] = __shfl_up_sync(0xffffffff, t, 2, width);
  mine[2] = __shfl_down_sync(0xffffffff, t, 5, width);
  mine[3] = __shfl_xor_sync(0xffffffff, t, 1, width);
  mine[4] = static_cast<int>(__shfl_sync(0xffffffff, static_cast<double>(t) * 1e10, t + 1, width) / 1e10);
}

PROFILE_TEST(shuffles_of_each_kind_at_each_width) {
  const int warp = lanes();
  for (int width = 2; width <= warp; width *= 2) {
    const OnDevice<int> out(5 * 256);
    shuffles<<<1, 256>>>(out.get(), width);
    const std::vector<int> got = out.values();
    for (int t = 0; t < 256; ++t) {
      const int first = t / width * width;
      CHECK_EQ(got[5 * t], first + (3 & (width - 1)));
      CHECK_EQ(got[5 * t + 1], t - 2 >= first ? t - 2 : t);
      CHECK_EQ(got[5 * t + 2], t + 5 < first + width ? t + 5 : t);
      CHECK_EQ(got[5 * t + 3], t ^ 1);
      CHECK_EQ(got[5 * t + 4], first + (t + 1) % width);
    }
  }
}

__global__ void votes(int* out, int limit) {
  const int lane = threadIdx.x % warpSize;
  const auto below = __ballot_sync(0xffffffff, lane < limit);
  int* mine = out + 6 * threadIdx.x;
  mine[0] = __popc(below);
  mine[1] = __ffs(below);
  mine[2] = __any_sync(0xffffffff, lane == limit);
  mine[3] = __all_sync(0xffffffff, lane >= 0);
  mine[4] = __all_sync(0xffffffff, lane < limit);
  mine[5] = __popc(__match_any_sync(0xffffffff, lane / 4));
  __syncwarp();
}

PROFILE_TEST(votes_count_every_lane_of_the_warp) {
  const int warp = lanes();
  for (const int limit : {0, 1, 31, warp - 1, warp}) {
    const OnDevice<int> out(6 * 256);
    votes<<<1, 256>>>(out.get(), limit);
    const std::vector<int> got = out.values();
    for (int t = 0; t < 256; ++t) {
      CHECK_EQ(got[6 * t], limit);
      CHECK_EQ(got[6 * t + 1], limit > 0 ? 1 : 0);
      CHECK_EQ(got[6 * t + 2], limit < warp ? 1 : 0);
      CHECK_EQ(got[6 * t + 3], 1);
      CHECK_EQ(got[6 * t + 4], limit == warp ? 1 : 0);
      CHECK_EQ(got[6 * t + 5], 4);
    }
  }
}

// Lanes in different branches meet their own kind only; a lane that has returned is not waited for.
__global__ void divergent_warp(int* out) {
  const int t = threadIdx.x;
  if (t >= 20) return;
  if (t % 2 == 0) {
    const int sum = __reduce_add_sync(0x00055555u, t);
    out[t] = sum;
  } else {
    const int sum = __reduce_add_sync(0x000aaaaau, t);
    out[t] = 1000 + sum;
  }
  const int all = __popc(__ballot_sync(0xffffffff, true));
  out[t] += 10000 * all;
}

PROFILE_TEST(lanes_in_two_branches_and_lanes_that_returned) {
  const OnDevice<int> out(32);
  divergent_warp<<<1, 32>>>(out.get());
  const std::vector<int> got = out.values();
  for (int t = 0; t < 20; ++t) CHECK_EQ(got[t], (t % 2 == 0 ? 90 : 1100) + 200000);
  CHECK_EQ(got[20], 0);
}

// One atomic for all lanes that happen to be there: the idiom of __activemask().
__global__ void count_with_leaders(int* counter, int* atomics, int modulus) {
  if (threadIdx.x % modulus == 0) {
    const auto active = __activemask();
    const int lane = threadIdx.x % warpSize;
    int before = 0;
    if (lane == __ffs(active) - 1) {
      before = atomicAdd(counter, __popc(active));
      atomicAdd(atomics, 1);
    }
    before = __shfl_sync(active, before, __ffs(active) - 1);
    if (before < 0) *counter = -1;
  }
}

PROFILE_TEST(active_lanes_are_those_that_came_to_the_same_place) {
  const OnDevice<int> counter(1);
  const OnDevice<int> atomics(1);
  count_with_leaders<<<3, 256>>>(counter.get(), atomics.get(), 5);
  CHECK_EQ(counter.value(), 3 * 52);
  CHECK_EQ(atomics.value(), 3 * 256 / lanes());
}

// ---- atomics -------------------------------------------------------------------------------------

template <typename T>
__global__ void add_everywhere(T* sum) {
  atomicAdd(sum, T(1));
}

template <typename T>
double sum_of_atomics(int blocks, int threads) {
  const OnDevice<T> sum(1);
  add_everywhere<T><<<blocks, threads>>>(sum.get());
  return static_cast<double>(sum.value());
}

TEST(atomic_additions_lose_nothing) {
  const double all = 500 * 128;
  CHECK_EQ(sum_of_atomics<int>(500, 128), all);
  CHECK_EQ(sum_of_atomics<unsigned int>(500, 128), all);
  CHECK_EQ(sum_of_atomics<unsigned long long>(500, 128), all);
  CHECK_EQ(sum_of_atomics<float>(500, 128), all);
  CHECK_EQ(sum_of_atomics<double>(500, 128), all);
  // Half has 11 digits, bfloat16 eight: whole numbers up to 2048 and 256.
  CHECK_EQ(float(sum_of_atomics<__half>(16, 128)), 2048.0f);
  CHECK_EQ(float(sum_of_atomics<__mt_bfloat16>(2, 128)), 256.0f);
}

__global__ void every_atomic(int* v, unsigned int* u, unsigned long long* w) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicSub(&v[0], 2);
  atomicMin(&v[1], t - 100);
  atomicMax(&v[2], t);
  atomicOr(&v[3], 1 << (t % 20));
  atomicAnd(&v[4], ~(1 << (t % 20)));
  atomicXor(&v[5], 1 << (t % 3));
  atomicInc(&u[0], 6);
  atomicDec(&u[1], 6);
  atomicMax(&w[0], (1ull << 40) + t);
  // A lock-free maximum and a counted exchange through compare and swap.
  int seen = v[6];
  while (seen < t) {
    const int before = atomicCAS(&v[6], seen, t);
    if (before == seen) break;
    seen = before;
  }
  if (atomicExch(&v[7], 1) == 0) atomicAdd(&v[8], 1);
}

TEST(every_atomic_operation) {
  std::vector<int> start(9, 0);
  start[4] = -1;
  const OnDevice<int> v(start);
  const OnDevice<unsigned int> u(2);
  const OnDevice<unsigned long long> w(1);
  const int n = 20 * 60;
  every_atomic<<<20, 60>>>(v.get(), u.get(), w.get());
  const std::vector<int> got = v.values();
  CHECK_EQ(got[0], -2 * n);
  CHECK_EQ(got[1], -100);
  CHECK_EQ(got[2], n - 1);
  CHECK_EQ(got[3], (1 << 20) - 1);
  CHECK_EQ(got[4], ~((1 << 20) - 1));
  CHECK_EQ(got[5], 0);
  CHECK_EQ(got[6], n - 1);
  CHECK_EQ(got[8], 1);
  CHECK_EQ(u.values()[0], static_cast<unsigned int>(n % 7));
  CHECK_EQ(w.value(), (1ull << 40) + n - 1);
}

// ---- 16-bit numbers ------------------------------------------------------------------------------

TEST(half_holds_every_bit_pattern_through_float) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const __half h = __ushort_as_half(static_cast<unsigned short>(bits));
    const __half back = __float2half(__half2float(h));
    const bool nan = (bits & 0x7fffu) > 0x7c00u;
    CHECK(nan ? __hisnan(back) : __half_as_ushort(back) == bits);
    const __mt_bfloat16 b = __ushort_as_bfloat16(static_cast<unsigned short>(bits));
    const __mt_bfloat16 same = __float2bfloat16(__bfloat162float(b));
    CHECK((bits & 0x7fffu) > 0x7f80u ? __hisnan(same) : __bfloat16_as_ushort(same) == bits);
  }
}

TEST(rounding_to_half_is_to_nearest_even) {
  CHECK_EQ(float(__half(2049.0f)), 2048.0f);
  CHECK_EQ(float(__half(2051.0f)), 2052.0f);
  CHECK_EQ(float(__half(65519.0f)), 65504.0f);
  CHECK(std::isinf(float(__half(65520.0f))));
  CHECK_EQ(float(__half(0x1p-25f)), 0.0f);              // half of the smallest: to even
  CHECK_EQ(float(__half(0x1.000002p-25f)), 0x1p-24f);   // just above
  CHECK_EQ(float(__float2half_rz(2051.9f)), 2050.0f);
  CHECK_EQ(float(__float2half_ru(2048.1f)), 2050.0f);
  CHECK_EQ(float(__float2half_rd(-2048.1f)), -2050.0f);
  CHECK_EQ(float(__float2half_rz(1e6f)), 65504.0f);
  // From double at once: through float this would round twice.
  CHECK_EQ(float(__double2half(1.0 + 0x1p-11 + 0x1p-40)), 1.0f + 0x1p-10f);
  CHECK_EQ(float(__mt_bfloat16(257.0f)), 256.0f);
  CHECK_EQ(float(__mt_bfloat16(259.0f)), 260.0f);
  // Every float between two halves: nearer one wins.
  for (uint32_t bits = 0x3000; bits < 0x3010; ++bits) {
    const float low = __half2float(__ushort_as_half(bits));
    const float high = __half2float(__ushort_as_half(bits + 1));
    for (int i = 0; i <= 16; ++i) {
      const float x = low + (high - low) * (i / 16.0f);
      const float expected = i < 8 || (i == 8 && bits % 2 == 0) ? low : high;
      CHECK_EQ(__half2float(__float2half(x)), expected);
    }
  }
}

__global__ void half_arithmetic(const __half* a, const __half* b, __half* out, __mt_bfloat16* wide) {
  const int i = threadIdx.x;
  __half sum = a[i] + b[i];
  sum = __hfma(sum, a[i], __hmul(b[i], b[i]));
  sum += hsqrt(__habs(sum));
  out[i] = a[i] < b[i] ? sum : -sum;
  const __half2 pair = __hadd2(__halves2half2(a[i], b[i]), __float2half2_rn(0.5f));
  wide[i] = __float2bfloat16(__low2float(pair) * __high2float(pair));
}

TEST(arithmetic_of_half_and_bfloat16) {
  const std::vector<float> x = some_floats(64, 20);
  const std::vector<float> y = some_floats(64, 21);
  std::vector<__half> hx;
  std::vector<__half> hy;
  for (int i = 0; i < 64; ++i) {
    hx.push_back(__half(x[i]));
    hy.push_back(__half(y[i]));
  }
  const OnDevice<__half> a(hx);
  const OnDevice<__half> b(hy);
  const OnDevice<__half> out(64);
  const OnDevice<__mt_bfloat16> wide(64);
  half_arithmetic<<<1, 64>>>(a.get(), b.get(), out.get(), wide.get());
  const std::vector<__half> got = out.values();
  const std::vector<__mt_bfloat16> products = wide.values();
  for (int i = 0; i < 64; ++i) {
    const double p = float(hx[i]);
    const double q = float(hy[i]);
    double sum = (p + q) * p + q * q;
    sum += std::sqrt(std::fabs(sum));
    CHECK_NEAR(float(got[i]), p < q ? sum : -sum, 4e-3 * (1 + std::fabs(sum)));
    CHECK_NEAR(float(products[i]), (p + 0.5) * (q + 0.5), 1e-2);
  }
}

TEST(fused_multiply_add_of_half_rounds_once) {
  // 1 + 2^-10 squared is 1 + 2^-9 + 2^-20: the last term decides what -1 - 2^-9 leaves.
  const __half a = __half(1.0f + 0x1p-10f);
  CHECK_EQ(float(__hfma(a, a, __half(-1.0f - 0x1p-9f))), 0x1p-20f);
}

// ---- symbols -------------------------------------------------------------------------------------

__constant__ int table[8];
__device__ int total;

__global__ void add_table(int factor) { atomicAdd(&total, factor * table[threadIdx.x]); }

TEST(constant_and_device_variables) {
  const int values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  CHECK_EQ(musaMemcpyToSymbol(table, values, sizeof(values)), musaSuccess);
  const int seven = 70;
  CHECK_EQ(musaMemcpyToSymbol(table, &seven, sizeof(int), 6 * sizeof(int)), musaSuccess);
  const int zero = 0;
  CHECK_EQ(musaMemcpyToSymbol(total, &zero, sizeof(int)), musaSuccess);
  add_table<<<3, 8>>>(2);
  int got = 0;
  CHECK_EQ(musaMemcpyFromSymbol(&got, total, sizeof(int)), musaSuccess);
  CHECK_EQ(got, 3 * 2 * (36 - 7 + 70));
  size_t bytes = 0;
  CHECK_EQ(musaGetSymbolSize(&bytes, table), musaSuccess);
  CHECK_EQ(bytes, sizeof(values));
  // Beyond the symbol's end, and in a direction that it cannot go.
  CHECK_EQ(musaMemcpyToSymbol(table, values, sizeof(values), 1), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpyToSymbol(table, values, 4, 0, musaMemcpyDeviceToHost),
           musaErrorInvalidMemcpyDirection);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidMemcpyDirection);
  CHECK_EQ(musaGetLastError(), musaSuccess);
}

// ---- launches ------------------------------------------------------------------------------------

template <typename T>
__global__ void fill_with(T* out, T value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

TEST(launches_by_pointer) {
  const OnDevice<double> out(100);
  double* pointer = out.get();
  double value = 2.5;
  int n = 90;
  void* arguments[] = {&pointer, &value, &n};
  CHECK_EQ(musaLaunchKernel((void*)fill_with<double>, dim3(4), dim3(32), arguments, 0, nullptr),
           musaSuccess);
  CHECK_EQ(musaLaunchKernel(fill_with<double>, dim3(4), dim3(2048), arguments, 0, nullptr),
           musaErrorInvalidConfiguration);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidConfiguration);
  const std::vector<double> got = out.values();
  for (int i = 0; i < 100; ++i) CHECK_EQ(got[i], i < 90 ? 2.5 : 0.0);
}

TEST(attributes_and_occupancy_of_a_kernel) {
  musaFuncAttributes attributes;
  CHECK_EQ(musaFuncGetAttributes(&attributes, fill_with<double>), musaSuccess);
  CHECK_EQ(attributes.maxThreadsPerBlock, 1024);
  int blocks = 0;
  CHECK_EQ(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill_with<double>, 256, 0),
           musaSuccess);
  CHECK(blocks > 0);
  CHECK_EQ(musaFuncSetAttribute(fill_with<double>, musaFuncAttributeMaxDynamicSharedMemorySize,
                                1 << 30),
           musaErrorInvalidValue);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidValue);
}

template <typename Body>
__global__ void for_each(int n, Body body) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) body(i);
}

TEST(lambdas_are_launched_and_captured) {
  const OnDevice<int> out(1000);
  int* const p = out.get();
  const int offset = 3;
  for_each<<<10, 100>>>(1000, [=] __device__(int i) { p[i] = i + offset; });
  const std::vector<int> got = out.values();
  for (int i = 0; i < 1000; ++i) CHECK_EQ(got[i], i + 3);
}

TEST(launches_keep_the_order_of_their_stream) {
  musaStream_t stream;
  CHECK_EQ(musaStreamCreate(&stream), musaSuccess);
  const OnDevice<int> out(4096);
  for (int i = 1; i <= 20; ++i) fill_with<int><<<16, 256, 0, stream>>>(out.get(), i, 4096);
  CHECK_EQ(musaStreamSynchronize(stream), musaSuccess);
  for (const int value : out.values()) CHECK_EQ(value, 20);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
  fill_with<int><<<1, 1, 0, stream>>>(out.get(), 1, 1);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaGetLastError(), musaSuccess);
}

TEST(kernels_launched_by_several_host_threads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      musaStream_t stream;
      (void)musaStreamCreate(&stream);
      {
        const OnDevice<int> out(8 * 256);
        for (int i = 0; i < 10; ++i) {
          rotate<<<8, 256, 256 * sizeof(int), stream>>>(out.get(), 5 + t);
        }
        (void)musaStreamSynchronize(stream);
        const std::vector<int> got = out.values();
        for (int i = 0; i < 8 * 256; ++i) wrong += got[i] != (i % 256 + 5 + t) % 256;
      }
      (void)musaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(a_launch_beyond_the_devices_limits_is_refused_and_the_next_one_works) {
  const OnDevice<int> out(64);
  const struct {
    dim3 grid, block;
    size_t shared;
    musaError_t error;
  } refused[] = {
      {dim3(1), dim3(1025), 0, musaErrorInvalidConfiguration},
      {dim3(1), dim3(0), 0, musaErrorInvalidConfiguration},
      {dim3(0), dim3(1), 0, musaErrorInvalidConfiguration},
      {dim3(1), dim3(1, 1, 65), 0, musaErrorInvalidConfiguration},
      {dim3(1, 65536), dim3(1), 0, musaErrorInvalidConfiguration},
      {dim3(1), dim3(64), (48 << 10) + 1, musaErrorInvalidValue},
  };
  for (const auto& launch : refused) {
    fill_with<int><<<launch.grid, launch.block, launch.shared>>>(out.get(), 1, 64);
    CHECK_EQ(musaPeekAtLastError(), launch.error);
    CHECK_EQ(musaGetLastError(), launch.error);
    CHECK_EQ(musaGetLastError(), musaSuccess);
    CHECK_EQ(out.values()[0], 0);
  }
  fill_with<int><<<1, 64, 48 << 10>>>(out.get(), 7, 64);
  CHECK_EQ(out.values()[63], 7);
}

// ---- functions of the language -------------------------------------------------------------------

__global__ void integer_functions(long long* out) {
  int i = 0;
  out[i++] = __popc(0xf0f0u);
  out[i++] = __clz(1);
  out[i++] = __clz(0);
  out[i++] = __ffs(0);
  out[i++] = __ffsll(1ll << 40);
  out[i++] = __brev(1u);
  out[i++] = static_cast<long long>(__brevll(2ull) >> 62);
  out[i++] = __mulhi(1 << 30, 8);
  out[i++] = __umulhi(0xffffffffu, 0xffffffffu);
  out[i++] = __mul24(-3, 5);
  out[i++] = __byte_perm(0x33221100u, 0x77665544u, 0x7520u);
  out[i++] = __funnelshift_l(0x80000000u, 1u, 1);
  out[i++] = __float2int_rn(2.5f);
  out[i++] = __float2int_rz(-2.9f);
  out[i++] = __float2int_rd(-2.1f);
  out[i++] = __float2int_rn(1e20f);
  out[i++] = __float2uint_rz(-5.0f);
  out[i++] = __float_as_int(1.0f);
  out[i++] = __double_as_longlong(1.0);
  out[i++] = __sad(-3, 4, 10);
  out[i++] = __dp4a(0x01020304, 0x01010101, 5);
  out[i++] = min(3, -2) + max(3u, 5u);
}

TEST(integer_functions_and_conversions) {
  const OnDevice<long long> out(22);
  integer_functions<<<1, 1>>>(out.get());
  const std::vector<long long> expected = {
      8,           31,     32,         0,           41,      1ll << 31, 1,  2,
      0xfffffffell, -15,   0x77552200, 3,           2,       -2,        -3, 2147483647,
      0,           0x3f800000, 0x3ff0000000000000, 17, 15,   3};
  const std::vector<long long> got = out.values();
  for (size_t i = 0; i < expected.size(); ++i) CHECK_EQ(got[i], expected[i]);
}

TEST(real_functions_that_c_lacks) {
  CHECK_NEAR(rsqrtf(4.0f), 0.5, 1e-7);
  CHECK_NEAR(rcbrt(8.0), 0.5, 1e-15);
  CHECK_EQ(sinpi(1.0), 0.0);
  CHECK_EQ(cospi(0.5), 0.0);
  CHECK_NEAR(sinpi(0.25), std::sqrt(0.5), 1e-15);
  CHECK_NEAR(sinpif(-2.5f), -1.0, 1e-7);
  for (const double x : {-3.0, -1.0, -0.3, 1e-8, 0.5, 0.9, 2.5, 4.0}) {
    CHECK_NEAR(erfinv(std::erf(x)), x, 1e-15 * std::exp(x * x) + 1e-15);
    if (x > 0) CHECK_NEAR(erfcinv(std::erfc(x)), x, 1e-13);
  }
  CHECK_NEAR(erfcinv(1e-300), 26.209469960516, 1e-11);
  CHECK(std::isinf(erfinv(1.0)) && std::isnan(erfinv(1.5)) && std::isinf(erfcinv(0.0)));
  CHECK_NEAR(normcdf(1.959963984540054), 0.975, 1e-15);
  CHECK_NEAR(normcdfinv(0.975), 1.959963984540054, 1e-12);
  CHECK_NEAR(erfcx(30.0), 0.018795888861416751, 1e-13);
  CHECK_EQ(__saturatef(NAN), 0.0f);
  CHECK_NEAR(norm3d(2.0, 3.0, 6.0), 7.0, 1e-15);
}

TEST(vector_types_are_laid_out_as_the_devices) {
  static_assert(sizeof(float3) == 12 && alignof(float3) == 4);
  static_assert(sizeof(float4) == 16 && alignof(float4) == 16);
  static_assert(sizeof(double4) == 32 && alignof(double4) == 16);
  static_assert(sizeof(char4) == 4 && alignof(char4) == 4);
  static_assert(sizeof(__half2) == 4 && alignof(__half2) == 4);
  const float4 v = make_float4(1, 2, 3, 4);
  CHECK_EQ(v.w, 4.0f);
}

// ---- kernels that fail ---------------------------------------------------------------------------

__global__ void barrier_for_some() {
  if (threadIdx.x < 10) {
    __syncthreads();
  }
}

FAULT_TEST(a_barrier_that_some_threads_never_reach_is_reported) {
  const std::string text = stderr_of([] { barrier_for_some<<<2, 64>>>(); });
  CHECK_CONTAINS(text, "kernel 'barrier_for_some'");
  CHECK_CONTAINS(text, "divergent barrier: 10 threads wait for others that do not come, 54 have returned");
  CHECK_CONTAINS(text, "thread (0,0,0) waits in __syncthreads at ");
  CHECK_CONTAINS(text, "kernel_features_test.mu:");
  // As a device's: every later call fails, and nothing clears it.
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
  CHECK_EQ(musaDeviceSynchronize(), musaErrorLaunchFailure);
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
}

__global__ void two_barriers(int* out) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
    out[0] = 1;
  } else {
    __syncthreads();
    out[1] = 1;
  }
}

FAULT_TEST(threads_at_two_different_barriers_are_reported) {
  const OnDevice<int> out(2);
  const std::string text = stderr_of([&] { two_barriers<<<1, 32>>>(out.get()); });
  CHECK_CONTAINS(text, "divergent barrier: here the thread waits at ");
  CHECK_CONTAINS(text, "thread (31,0,0)");
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
}

__global__ void early_return_before_shuffle(int n) {
  if (threadIdx.x >= n) {
    __syncthreads();
    return;
  }
  __shfl_sync(0xffffffff, 1, 0);
  __syncthreads();
}

FAULT_TEST(lanes_that_wait_for_lanes_at_a_barrier_are_reported) {
  const std::string text = stderr_of([] { early_return_before_shuffle<<<1, 32>>>(20); });
  CHECK_CONTAINS(text, "waits in __shfl_sync at ");
  CHECK_CONTAINS(text, "waits in __syncthreads at ");
}

__global__ void foreign_mask() { __syncwarp(0x0fu); }

FAULT_TEST(a_mask_without_the_calling_lane_is_reported) {
  const std::string text = stderr_of([] { foreign_mask<<<1, 32>>>(); });
  CHECK_CONTAINS(text, "lane 4 is not in the mask");
}

__global__ void overrun_static(int n) {
  __shared__ float row[16];
  float* at = row;  // UndefinedBehaviorSanitizer, which knows the array's bounds, comes first otherwise
  if (threadIdx.x < n) at[threadIdx.x] = 1;
  __syncthreads();
}

FAULT_TEST(writing_past_a_shared_array_is_reported_with_the_thread) {
  const std::string text = stderr_of([] { overrun_static<<<dim3(3, 2), 32>>>(17); });
  CHECK_CONTAINS(text, "block (0,0,0), thread (16,0,0): wrote beyond the end of shared variable 'row' (64 bytes)");
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}

__global__ void overrun_dynamic(int n) {
  extern __shared__ int data[];
  data[n] = 1;
}

FAULT_TEST(touching_what_lies_past_dynamic_shared_memory_is_reported) {
  const std::string text = stderr_of([] { overrun_dynamic<<<1, 1, 128>>>(32); });
  CHECK_CONTAINS(text, "kernel 'overrun_dynamic'");
  CHECK_CONTAINS(text, "thread (0,0,0): accessed shared memory out of range");
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}

FAULT_TEST(a_few_bytes_past_dynamic_shared_memory_are_reported) {
  const std::string text = stderr_of([] { overrun_dynamic<<<1, 1, 100>>>(25); });
  CHECK_CONTAINS(text, "wrote beyond the end of the dynamic shared memory (100 bytes)");
}

__global__ void much_static_shared(int* out) {
  __shared__ int big[10 << 10];
  big[0] = 1;
  out[0] = big[0];
}

TEST(static_and_dynamic_shared_memory_together_have_a_limit) {
  const OnDevice<int> out(1);
  much_static_shared<<<1, 1, 1024>>>(out.get());
  CHECK_EQ(out.value(), 1);
  // Known from the first launch on: the next that does not fit is refused.
  much_static_shared<<<1, 1, 1024>>>(out.get());
  for (size_t dynamic : {size_t{8} << 10, size_t{9} << 10}) {
    const auto launch = [&] { much_static_shared<<<1, 1, dynamic>>>(out.get()); };
    launch();
    CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
    if (dynamic > (8 << 10)) CHECK_EQ(musaGetLastError(), musaErrorInvalidValue);
  }
}

__global__ void too_much_static_shared(int* out) {
  __shared__ int bigger[13 << 10];
  bigger[0] = 1;
  out[0] = bigger[0];
}

FAULT_TEST(more_static_shared_memory_than_a_block_has_is_reported) {
  const OnDevice<int> out(1);
  const std::string text = stderr_of([&] { too_much_static_shared<<<1, 1>>>(out.get()); });
  CHECK_CONTAINS(text, "shared variable 'bigger' needs 53248 bytes");
  CHECK_EQ(musaGetLastError(), musaErrorLaunchOutOfResources);
}

__global__ void wild_pointer(int* p) {
  if (threadIdx.x == 5) *p = 1;
}

FAULT_TEST(a_wild_pointer_is_an_illegal_address) {
  const std::string text = stderr_of([] {
    wild_pointer<<<1, 32>>>(reinterpret_cast<int*>(uintptr_t{0x1230}));
  });
  CHECK_CONTAINS(text, "kernel 'wild_pointer'");
  CHECK_CONTAINS(text, "thread (5,0,0): accessed address 0x1230");
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
  // A launch on a broken device runs nothing.
  wild_pointer<<<1, 32>>>(nullptr);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}

__device__ int deep(int n) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(n);
  return n == 0 ? frame[0] : deep(n - 1) + frame[0];
}

__global__ void recursion(int* out, int n) { out[threadIdx.x] = deep(n); }

FAULT_TEST(a_stack_that_runs_over_is_reported) {
  const OnDevice<int> out(32);
  recursion<<<1, 32>>>(out.get(), 20);
  CHECK_EQ(musaGetLastError(), musaSuccess);
  const std::string text = stderr_of([&] { recursion<<<1, 32>>>(out.get(), 100000); });
  CHECK_CONTAINS(text, "used more than ");
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
}

__global__ void asserts(int limit) {
  __syncthreads();
  assert(static_cast<int>(threadIdx.x) < limit);
}

FAULT_TEST(a_failed_assertion_is_the_devices_error) {
  asserts<<<1, 8>>>(8);
  CHECK_EQ(musaGetLastError(), musaSuccess);
  const std::string text = stderr_of([] { asserts<<<dim3(1, 3), 8>>>(7); });
  CHECK_CONTAINS(text, "block: [0,0,0], thread: [7,0,0] Assertion `");
  CHECK_EQ(musaGetLastError(), musaErrorAssert);
}

__global__ void traps() { __trap(); }

FAULT_TEST(a_trap_ends_the_kernel) {
  const std::string text = stderr_of([] { traps<<<1, 1>>>(); });
  CHECK_CONTAINS(text, "__trap() was called");
  CHECK_EQ(musaGetLastError(), musaErrorLaunchFailure);
}

template <typename T>
__attribute__((no_sanitize("undefined"))) __global__ void divides(T* quotients, T* remainders, const T* a,
                                                                  const T* b) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  quotients[i] = a[i] / b[i];
  __syncthreads();
  remainders[i] = a[i] % b[i];
}

template <typename T>
void a_type_divides() {
  const int n = 4 * 64;
  const T lowest = std::numeric_limits<T>::min();
  std::vector<T> a(n), b(n, 0);
  for (int i = 0; i < n; ++i) a[i] = static_cast<T>(i);
  b[n - 1] = 4;
  if (std::numeric_limits<T>::is_signed) {
    a[0] = lowest;
    b[0] = static_cast<T>(-1);
  }
  const OnDevice<T> quotients(n), remainders(n), left(a), right(b);
  divides<<<4, 64>>>(quotients.get(), remainders.get(), left.get(), right.get());
  const std::vector<T> q = quotients.values();  // the device is as it was
  const std::vector<T> r = remainders.values();
  CHECK_EQ(q[n - 1], static_cast<T>(a[n - 1] / 4));
  CHECK_EQ(r[n - 1], static_cast<T>(a[n - 1] % 4));
  if (std::numeric_limits<T>::is_signed) {
    CHECK_EQ(q[0], lowest);
    CHECK_EQ(r[0], T{0});
  }
}

TEST(a_kernel_that_divides_by_zero_goes_on) {
  a_type_divides<int>();
  a_type_divides<unsigned int>();
  a_type_divides<long long>();
  a_type_divides<unsigned long long>();
  a_type_divides<short>();
}

TEST_WITH_ENV(in_debug_mode_a_division_by_zero_is_told_once, "TORCH_MUSA_HOST_DEBUG=1") {
  const OnDevice<int> a(64), b(64), q(64), r(64);
  const std::string text = stderr_of([&] {
    divides<<<1, 64>>>(q.get(), r.get(), a.get(), b.get());
    divides<<<1, 64>>>(q.get(), r.get(), a.get(), b.get());
  });
  CHECK_EQ(musaGetLastError(), musaSuccess);
  const size_t at = text.find("musart: divides divided an integer by zero");
  CHECK(at != std::string::npos);
  CHECK_EQ(text.find("by zero", at + 50), std::string::npos);
}

// Whoever speaks the API returns the error, from whatever header it comes.
FAULT_TEST(after_a_sticky_error_nothing_is_copied_to_symbols_or_launched) {
  const int values[] = {1, 2, 3};
  int back[3] = {};
  const OnDevice<int> out(64);
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  CHECK_EQ(musaMemcpyToSymbolAsync(table, values, sizeof(values)), musaErrorIllegalAddress);
  CHECK_EQ(musaMemcpyToSymbol(table, values, sizeof(values)), musaErrorIllegalAddress);
  CHECK_EQ(musaMemcpyFromSymbolAsync(back, table, sizeof(back)), musaErrorIllegalAddress);
  CHECK_EQ(musaMemcpyFromSymbol(back, table, sizeof(back)), musaErrorIllegalAddress);
  rotate<<<1, 64, 64 * sizeof(int)>>>(out.get(), 1);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
}

__global__ void ballot_into_an_integer(unsigned int* out) {
  const unsigned int mask = __ballot_sync(0xffffffff, 1);
  out[threadIdx.x] = mask;
}

TEST_WITH_ENV(a_ballot_of_32_lanes_fits_an_integer, "MUSA_ARCH=mp_31") {
  const OnDevice<unsigned int> out(64);
  ballot_into_an_integer<<<1, 64>>>(out.get());
  for (const unsigned int mask : out.values()) CHECK(mask == 0xffffffffu);
}

TEST_WITH_ENV(a_ballot_of_128_lanes_in_an_integer_is_reported, "MUSA_ARCH=mp_22") {
  const OnDevice<unsigned int> out(128);
  const std::string text = stderr_of([&] { ballot_into_an_integer<<<1, 128>>>(out.get()); });
  CHECK_CONTAINS(text, "a ballot with lanes beyond an integer's bits");
}

struct Broken {
  int code;
};

__global__ void throws_for(int thread) {
  __syncthreads();
  if (static_cast<int>(threadIdx.x) == thread) throw Broken{thread};
  __syncthreads();
}

TEST(what_a_kernel_throws_reaches_its_launch_and_the_next_kernel_runs) {
  if (::musa::host::asynchronous()) return;  // there it is the device's error: nobody could catch it
  for (int thread : {0, 40, 63}) {
    int caught = -1;
    try {
      throws_for<<<2, 64>>>(thread);
    } catch (const Broken& broken) {
      caught = broken.code;
    }
    CHECK_EQ(caught, thread);
  }
  const OnDevice<int> out(256);
  rotate<<<1, 256, 256 * sizeof(int)>>>(out.get(), 1);
  CHECK_EQ(out.values()[0], 1);
}

}  // namespace
