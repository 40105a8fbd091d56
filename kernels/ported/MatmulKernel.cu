// Matrix products of the types that muDNN refuses: double, integers and complex numbers.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <limits>

#include "kernels/ported/PortedKernels.h"

namespace at::musa {
namespace {

// The tile of the product that one thread computes: what it loads of `a` and `b` is used four times
// each, and the sums stay in registers.
constexpr int kRows = 4;
constexpr int kColumns = 4;
constexpr int kThreads = 128;

struct Shape {
  int64_t batch, n, k, m;
};

// Strides in elements, of batch, row and column.
struct Strides {
  int64_t batch, row, column;
};

template <typename scalar_t>
struct Product {
  Shape shape;
  scalar_t* out;
  Strides so;
  const scalar_t* a;
  Strides sa;
  const scalar_t* b;
  Strides sb;

  __host__ __device__ int64_t tiles_down() const { return (shape.n + kRows - 1) / kRows; }
  __host__ __device__ int64_t tiles_across() const { return (shape.m + kColumns - 1) / kColumns; }
};

// Sums of a tile of the compile-time size (rows and columns 0), or of any size up to that at the
// edges of the product.
template <int kTileRows, int kTileColumns, typename scalar_t>
__host__ __device__ inline void sum_tile(scalar_t (&sums)[kRows][kColumns], int64_t k,
                                         const scalar_t* a, Strides sa, const scalar_t* b,
                                         Strides sb, int rows, int columns) {
  const int r_end = kTileRows ? kTileRows : rows;
  const int c_end = kTileColumns ? kTileColumns : columns;
  for (int64_t i = 0; i < k; ++i) {
    const scalar_t* line = b + i * sb.row;
    for (int r = 0; r < r_end; ++r) {
      const scalar_t factor = a[r * sa.row + i * sa.column];
      for (int c = 0; c < c_end; ++c) {
        sums[r][c] += factor * line[kTileColumns ? c : c * sb.column];
      }
    }
  }
}

template <typename scalar_t>
__global__ void matmul_tile_kernel(const Product<scalar_t> __grid_constant__ p) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t across = p.tiles_across();
  const int64_t down = p.tiles_down();
  if (tile >= p.shape.batch * down * across) {
    return;
  }
  // Neighbouring threads share rows of `a` and read neighbouring columns of `b`.
  const int64_t column = tile % across * kColumns;
  const int64_t row = tile / across % down * kRows;
  const int64_t batch = tile / across / down;
  const int rows = p.shape.n - row < kRows ? static_cast<int>(p.shape.n - row) : kRows;
  const int columns =
      p.shape.m - column < kColumns ? static_cast<int>(p.shape.m - column) : kColumns;
  const scalar_t* a = p.a + batch * p.sa.batch + row * p.sa.row;
  const scalar_t* b = p.b + batch * p.sb.batch + column * p.sb.column;
  scalar_t* out = p.out + batch * p.so.batch + row * p.so.row + column * p.so.column;

  scalar_t sums[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      sums[r][c] = scalar_t(0);
    }
  }
  if (rows == kRows && columns == kColumns && p.sb.column == 1) {
    sum_tile<kRows, kColumns>(sums, p.shape.k, a, p.sa, b, p.sb, rows, columns);
  } else {
    sum_tile<0, 0>(sums, p.shape.k, a, p.sa, b, p.sb, rows, columns);
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      out[r * p.so.row + c * p.so.column] = sums[r][c];
    }
  }
}

Strides strides_of(const Tensor& t) { return {t.stride(0), t.stride(1), t.stride(2)}; }

}  // namespace

void matmul_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (out.dim() == 2) {
    return matmul_kernel(out.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0));
  }
  TORCH_INTERNAL_ASSERT(out.dim() == 3 && a.dim() == 3 && b.dim() == 3);
  const Shape shape{out.size(0), out.size(1), a.size(2), out.size(2)};
  TORCH_INTERNAL_ASSERT(a.size(0) == shape.batch && a.size(1) == shape.n &&
                        b.size(0) == shape.batch && b.size(1) == shape.k && b.size(2) == shape.m);
  TORCH_INTERNAL_ASSERT(a.scalar_type() == out.scalar_type() &&
                        b.scalar_type() == out.scalar_type());
  if (out.numel() == 0) {
    return;
  }
  const c10::cuda::CUDAGuard guard(out.device());
  // Rows of `b` are read n times each: one copy makes every such read contiguous.
  const Tensor dense = b.stride(2) == 1 || shape.m == 1 || shape.n == 1 ? b : b.contiguous();
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(out.scalar_type(), "matmul_cuda", [&] {
    const Product<scalar_t> product{shape,
                                    out.mutable_data_ptr<scalar_t>(),
                                    strides_of(out),
                                    a.const_data_ptr<scalar_t>(),
                                    strides_of(a),
                                    dense.const_data_ptr<scalar_t>(),
                                    strides_of(dense)};
    const int64_t tiles = shape.batch * product.tiles_down() * product.tiles_across();
    const int64_t blocks = (tiles + kThreads - 1) / kThreads;
    TORCH_CHECK(blocks <= std::numeric_limits<int32_t>::max(), "matmul: a product of ", out.sizes(),
                " has too many elements for one launch");
    matmul_tile_kernel<scalar_t>
        <<<static_cast<unsigned int>(blocks), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
            product);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

}  // namespace at::musa
