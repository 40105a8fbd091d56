// Matrix products of the types that muDNN refuses: double, integers and complex numbers.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include "kernels/ported/PortedKernels.h"

namespace at::musa {
namespace {

// Columns of the product that one thread computes: enough to use each element of `a` it loads many
// times over, few enough to keep their sums in registers.
constexpr int kColumns = 16;
constexpr int kThreads = 128;

struct Shape {
  int64_t batch, n, k, m;
};

// Strides in elements, of batch, row and column.
struct Strides {
  int64_t batch, row, column;
};

template <typename scalar_t>
__global__ void matmul_tile_kernel(Shape shape, scalar_t* out, Strides so, const scalar_t* a,
                                   Strides sa, const scalar_t* b, Strides sb,
                                   int64_t tiles_per_row) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (tile >= shape.batch * shape.n * tiles_per_row) {
    return;
  }
  // Neighbouring threads share a row of `a` and read neighbouring columns of `b`.
  const int64_t first = tile % tiles_per_row * kColumns;
  const int64_t row = tile / tiles_per_row % shape.n;
  const int64_t batch = tile / tiles_per_row / shape.n;
  const int count = shape.m - first < kColumns ? static_cast<int>(shape.m - first) : kColumns;
  a += batch * sa.batch + row * sa.row;
  b += batch * sb.batch + first * sb.column;
  out += batch * so.batch + row * so.row + first * so.column;

  scalar_t sums[kColumns];
  for (int j = 0; j < kColumns; ++j) {
    sums[j] = scalar_t(0);
  }
  if (count == kColumns && sb.column == 1) {
    for (int64_t i = 0; i < shape.k; ++i) {
      const scalar_t factor = a[i * sa.column];
      const scalar_t* line = b + i * sb.row;
      for (int j = 0; j < kColumns; ++j) {
        sums[j] += factor * line[j];
      }
    }
  } else {
    for (int64_t i = 0; i < shape.k; ++i) {
      const scalar_t factor = a[i * sa.column];
      for (int j = 0; j < count; ++j) {
        sums[j] += factor * b[i * sb.row + j * sb.column];
      }
    }
  }
  for (int j = 0; j < count; ++j) {
    out[j * so.column] = sums[j];
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
  const int64_t tiles_per_row = (shape.m + kColumns - 1) / kColumns;
  const int64_t tiles = shape.batch * shape.n * tiles_per_row;
  const int64_t blocks = (tiles + kThreads - 1) / kThreads;
  TORCH_CHECK(blocks <= std::numeric_limits<int32_t>::max(), "matmul: a product of ", out.sizes(),
              " has too many elements for one launch");
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(out.scalar_type(), "matmul_cuda", [&] {
    matmul_tile_kernel<scalar_t>
        <<<static_cast<unsigned int>(blocks), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
            shape, out.mutable_data_ptr<scalar_t>(), strides_of(out), a.const_data_ptr<scalar_t>(),
            strides_of(a), dense.const_data_ptr<scalar_t>(), strides_of(dense), tiles_per_row);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

}  // namespace at::musa
