// The small programs that every introduction to CUDA has, as MUSA sources: each against the same
// computed plainly here, at both warp sizes.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernel_testing.h"

namespace {

// ---- vector add ----------------------------------------------------------------------------------

__global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b,
                           float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] + b[i];
  }
}

PROFILE_TEST(vector_add_of_an_odd_size) {
  const int n = 100003;
  const std::vector<float> a = some_floats(n, 1);
  const std::vector<float> b = some_floats(n, 2);
  const OnDevice<float> da(a);
  const OnDevice<float> db(b);
  const OnDevice<float> out(n);
  vector_add<<<(n + 255) / 256, 256>>>(da.get(), db.get(), out.get(), n);
  const std::vector<float> got = out.values();
  for (int i = 0; i < n; ++i) CHECK(got[i] == a[i] + b[i]);
}

// ---- matrix product by tiles in shared memory ------------------------------------------------

template <int kTile>
__global__ void matmul_tiled(const float* a, const float* b, float* out, int n, int k, int m) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < k; first += kTile) {
    const int ka = first + threadIdx.x;
    const int kb = first + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < n && ka < k ? a[row * k + ka] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = kb < k && column < m ? b[kb * m + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (row < n && column < m) {
    out[row * m + column] = sum;
  }
}

PROFILE_TEST(matmul_by_tiles_in_shared_memory) {
  const int n = 70;
  const int k = 45;
  const int m = 33;
  const std::vector<float> a = some_floats(n * k, 3);
  const std::vector<float> b = some_floats(k * m, 4);
  const OnDevice<float> da(a);
  const OnDevice<float> db(b);
  const OnDevice<float> out(n * m);
  matmul_tiled<16><<<dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(da.get(), db.get(),
                                                                        out.get(), n, k, m);
  const std::vector<float> got = out.values();
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < m; ++c) {
      double expected = 0;
      for (int i = 0; i < k; ++i) expected += double(a[r * k + i]) * b[i * m + c];
      CHECK_NEAR(got[r * m + c], expected, 1e-5);
    }
  }
}

// ---- sum of a vector: shared memory, then shuffles ---------------------------------------------

__device__ float warp_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffff, value, offset);
  }
  return value;
}

__global__ void block_sum(const float* in, float* out, int n) {
  __shared__ float of_warps[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  const int lane = threadIdx.x % warpSize;
  const int warp = threadIdx.x / warpSize;
  sum = warp_sum(sum);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < (blockDim.x + warpSize - 1) / warpSize ? of_warps[lane] : 0.0f;
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(out, sum);
  }
}

PROFILE_TEST(sum_by_warp_shuffles_and_one_atomic_per_block) {
  const int n = 50000;
  const std::vector<float> values = some_floats(n, 5);
  const OnDevice<float> in(values);
  for (const int threads : {128, 256, 1024}) {
    const OnDevice<float> out(1);
    block_sum<<<7, threads>>>(in.get(), out.get(), n);
    CHECK_NEAR(out.value(), std::accumulate(values.begin(), values.end(), 0.0), 1e-2);
  }
}

__global__ void tree_sum(const int* in, int* out) {
  extern __shared__ int partial[];
  const unsigned int t = threadIdx.x;
  partial[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned int half = blockDim.x / 2; half > 0; half >>= 1) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}

PROFILE_TEST(tree_sum_in_dynamic_shared_memory) {
  const int blocks = 37;
  const int threads = 512;
  std::vector<int> values(blocks * threads);
  std::iota(values.begin(), values.end(), -5000);
  const OnDevice<int> in(values);
  const OnDevice<int> out(blocks);
  tree_sum<<<blocks, threads, threads * sizeof(int)>>>(in.get(), out.get());
  const std::vector<int> got = out.values();
  for (int b = 0; b < blocks; ++b) {
    CHECK_EQ(got[b], std::accumulate(values.begin() + b * threads,
                                     values.begin() + (b + 1) * threads, 0));
  }
}

// ---- prefix sums: Blelloch's two sweeps over a block, then the blocks' sums ----------------------

__global__ void scan_block(const int* in, int* out, int* sums, int n) {
  extern __shared__ int data[];
  const int t = threadIdx.x;
  const int base = 2 * blockIdx.x * blockDim.x;
  const int size = 2 * blockDim.x;
  data[2 * t] = base + 2 * t < n ? in[base + 2 * t] : 0;
  data[2 * t + 1] = base + 2 * t + 1 < n ? in[base + 2 * t + 1] : 0;
  int offset = 1;
  for (int d = size >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) data[offset * (2 * t + 2) - 1] += data[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  __syncthreads();
  if (t == 0) {
    sums[blockIdx.x] = data[size - 1];
    data[size - 1] = 0;
  }
  for (int d = 1; d < size; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      const int left = offset * (2 * t + 1) - 1;
      const int right = offset * (2 * t + 2) - 1;
      const int kept = data[left];
      data[left] = data[right];
      data[right] += kept;
    }
  }
  __syncthreads();
  if (base + 2 * t < n) out[base + 2 * t] = data[2 * t];
  if (base + 2 * t + 1 < n) out[base + 2 * t + 1] = data[2 * t + 1];
}

__global__ void add_sums(int* out, const int* sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int before = 0;
  for (int b = 0; b < i / 256; ++b) before += sums[b];
  out[i] += before;
}

PROFILE_TEST(exclusive_scan) {
  const int n = 5000;
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = (i * 7919) % 101 - 50;
  const OnDevice<int> in(values);
  const OnDevice<int> out(n);
  const int blocks = (n + 255) / 256;
  const OnDevice<int> sums(blocks);
  scan_block<<<blocks, 128, 256 * sizeof(int)>>>(in.get(), out.get(), sums.get(), n);
  add_sums<<<(n + 127) / 128, 128>>>(out.get(), sums.get(), n);
  std::vector<int> expected(n);
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), 0);
  CHECK(out.values() == expected);
}

// ---- histogram -----------------------------------------------------------------------------------

__global__ void histogram(const unsigned char* in, unsigned int* bins, int n) {
  __shared__ unsigned int mine[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[in[i]], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], mine[b]);
}

PROFILE_TEST(histogram_with_atomics_in_shared_memory) {
  const int n = 123457;
  std::vector<unsigned char> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
  const OnDevice<unsigned char> in(values);
  const OnDevice<unsigned int> bins(256);
  histogram<<<9, 192>>>(in.get(), bins.get(), n);
  std::vector<unsigned int> expected(256);
  for (const unsigned char value : values) ++expected[value];
  CHECK(bins.values() == expected);
}

// ---- transposition -------------------------------------------------------------------------------

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

PROFILE_TEST(transpose_through_padded_tiles) {
  const int rows = 77;
  const int columns = 130;
  const std::vector<float> values = some_floats(rows * columns, 6);
  const OnDevice<float> in(values);
  const OnDevice<float> out(rows * columns);
  transpose<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in.get(), out.get(), rows,
                                                                         columns);
  const std::vector<float> got = out.values();
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) CHECK(got[c * rows + r] == values[r * columns + c]);
  }
}

// ---- softmax and layer norm: a row a block -----------------------------------------------------

template <typename Op>
__device__ float block_reduce(float value, float neutral, Op op) {
  __shared__ float of_warps[32];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value = op(value, __shfl_xor_sync(0xffffffff, value, offset));
  }
  const int warps = (blockDim.x + warpSize - 1) / warpSize;
  if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = neutral;
  for (int w = 0; w < warps; ++w) value = op(value, of_warps[w]);
  __syncthreads();
  return value;
}

__global__ void softmax_rows(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float most = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) most = fmaxf(most, row[c]);
  most = block_reduce(most, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += __expf(row[c] - most);
  sum = block_reduce(sum, 0.0f, [](float a, float b) { return a + b; });
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    out[blockIdx.x * columns + c] = __expf(row[c] - most) / sum;
  }
}

PROFILE_TEST(softmax_of_rows) {
  const int rows = 19;
  const int columns = 517;
  std::vector<float> values = some_floats(rows * columns, 7);
  for (float& value : values) value *= 30;
  const OnDevice<float> in(values);
  const OnDevice<float> out(rows * columns);
  softmax_rows<<<rows, 256>>>(in.get(), out.get(), columns);
  const std::vector<float> got = out.values();
  for (int r = 0; r < rows; ++r) {
    const float* row = values.data() + r * columns;
    const double most = *std::max_element(row, row + columns);
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += std::exp(row[c] - most);
    for (int c = 0; c < columns; ++c) {
      CHECK_NEAR(got[r * columns + c], std::exp(row[c] - most) / sum, 1e-6);
    }
  }
}

// Welford's moments, merged across lanes as Chan et al. do.
struct Moments {
  float count, mean, m2;
  __device__ static Moments merge(const Moments& a, const Moments& b) {
    const float count = a.count + b.count;
    if (count == 0) return a;
    const float delta = b.mean - a.mean;
    return {count, a.mean + delta * b.count / count,
            a.m2 + b.m2 + delta * delta * a.count * b.count / count};
  }
};

__global__ void layer_norm_rows(const float* in, const float* gamma, const float* beta, float* out,
                                int columns, float epsilon) {
  __shared__ Moments of_warps[32];
  const float* row = in + blockIdx.x * columns;
  Moments mine{0, 0, 0};
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    mine = Moments::merge(mine, {1, row[c], 0});
  }
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    // A whole struct through a shuffle, and its parts one by one: the same.
    const Moments other = __shfl_xor_sync(0xffffffff, mine, offset);
    mine = Moments::merge(mine, other);
  }
  if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = mine;
  __syncthreads();
  Moments all{0, 0, 0};
  for (int w = 0; w < (blockDim.x + warpSize - 1) / warpSize; ++w) {
    all = Moments::merge(all, of_warps[w]);
  }
  const float scale = rsqrtf(all.m2 / all.count + epsilon);
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    out[blockIdx.x * columns + c] = (row[c] - all.mean) * scale * gamma[c] + beta[c];
  }
}

PROFILE_TEST(layer_norm_of_rows) {
  const int rows = 11;
  const int columns = 301;
  const std::vector<float> values = some_floats(rows * columns, 8);
  const std::vector<float> gamma = some_floats(columns, 9);
  const std::vector<float> beta = some_floats(columns, 10);
  const OnDevice<float> in(values);
  const OnDevice<float> g(gamma);
  const OnDevice<float> b(beta);
  const OnDevice<float> out(rows * columns);
  layer_norm_rows<<<rows, 128>>>(in.get(), g.get(), b.get(), out.get(), columns, 1e-5f);
  const std::vector<float> got = out.values();
  for (int r = 0; r < rows; ++r) {
    const float* row = values.data() + r * columns;
    const double mean = std::accumulate(row, row + columns, 0.0) / columns;
    double variance = 0;
    for (int c = 0; c < columns; ++c) variance += (row[c] - mean) * (row[c] - mean) / columns;
    for (int c = 0; c < columns; ++c) {
      const double expected = (row[c] - mean) / std::sqrt(variance + 1e-5) * gamma[c] + beta[c];
      CHECK_NEAR(got[r * columns + c], expected, 1e-5);
    }
  }
}

// ---- one step of a radix sort: a stable split by one bit -------------------------------------

__global__ void split_by_bit(const unsigned int* in, unsigned int* out, int bit) {
  extern __shared__ unsigned int zeros[];
  const int t = threadIdx.x;
  const unsigned int key = in[t];
  const unsigned int zero = ((key >> bit) & 1u) ^ 1u;
  zeros[t] = zero;
  __syncthreads();
  // Inclusive scan after Hillis and Steele.
  for (int offset = 1; offset < blockDim.x; offset *= 2) {
    const unsigned int add = t >= offset ? zeros[t - offset] : 0;
    __syncthreads();
    zeros[t] += add;
    __syncthreads();
  }
  const unsigned int all = zeros[blockDim.x - 1];
  const unsigned int before = zeros[t] - zero;
  out[zero ? before : all + t - before] = key;
}

// The same by votes: how many lanes below have a zero, warp by warp.
__global__ void split_by_bit_with_ballots(const unsigned int* in, unsigned int* out, int bit) {
  __shared__ int zeros_of_warp[32];
  const int t = threadIdx.x;
  const int lane = t % warpSize;
  const int warp = t / warpSize;
  const int warps = blockDim.x / warpSize;
  const unsigned int key = in[t];
  const bool zero = ((key >> bit) & 1u) == 0;
  const auto votes = __ballot_sync(0xffffffff, zero);
  const int below = __popc(votes & ~(~decltype(votes)() << lane));
  if (lane == 0) zeros_of_warp[warp] = __popc(votes);
  __syncthreads();
  int before = below;
  int all = 0;
  for (int w = 0; w < warps; ++w) {
    before += w < warp ? zeros_of_warp[w] : 0;
    all += zeros_of_warp[w];
  }
  out[zero ? before : all + t - before] = key;
}

PROFILE_TEST(radix_sort_step_by_step) {
  const int n = 512;
  std::vector<unsigned int> keys(n);
  for (int i = 0; i < n; ++i) keys[i] = (i * 2654435761u) >> 20;
  std::vector<unsigned int> expected = keys;
  std::sort(expected.begin(), expected.end());
  for (const bool ballots : {false, true}) {
    const OnDevice<unsigned int> a(keys);
    const OnDevice<unsigned int> b(n);
    for (int bit = 0; bit < 12; ++bit) {
      unsigned int* from = bit % 2 == 0 ? a.get() : b.get();
      unsigned int* to = bit % 2 == 0 ? b.get() : a.get();
      if (ballots) {
        split_by_bit_with_ballots<<<1, n>>>(from, to, bit);
      } else {
        split_by_bit<<<1, n, n * sizeof(unsigned int)>>>(from, to, bit);
      }
    }
    CHECK(a.values() == expected);
  }
}

// ---- a stencil in two dimensions with constant memory --------------------------------------------

__constant__ float filter[3][3];

__global__ void convolve(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int sx = min(max(x + dx, 0), width - 1);
      const int sy = min(max(y + dy, 0), height - 1);
      sum = fmaf(filter[dy + 1][dx + 1], in[sy * width + sx], sum);
    }
  }
  out[y * width + x] = sum;
}

PROFILE_TEST(convolution_with_a_filter_in_constant_memory) {
  const float weights[3][3] = {{1, 2, 1}, {0, 0, 0}, {-1, -2, -1}};
  CHECK_EQ(musaMemcpyToSymbol(filter, weights, sizeof(weights)), musaSuccess);
  const int width = 45;
  const int height = 31;
  const std::vector<float> image = some_floats(width * height, 11);
  const OnDevice<float> in(image);
  const OnDevice<float> out(width * height);
  convolve<<<dim3(3, 4), dim3(16, 8)>>>(in.get(), out.get(), width, height);
  const std::vector<float> got = out.values();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double expected = 0;
      for (int j = 0; j < 9; ++j) {
        const int sx = std::clamp(x + j % 3 - 1, 0, width - 1);
        const int sy = std::clamp(y + j / 3 - 1, 0, height - 1);
        expected += double(weights[j / 3][j % 3]) * image[sy * width + sx];
      }
      CHECK_NEAR(got[y * width + x], expected, 1e-5);
    }
  }
}

}  // namespace
