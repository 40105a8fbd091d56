// Triangular systems, systems with an LU factorization, and the permutation of one, hung on
// PyTorch's stubs. A thread takes one right-hand side of one matrix.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/TensorIterator.h>

#include <array>
#include <utility>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/KernelCheck.cuh"

namespace at::native {
namespace {

template <typename T>
__host__ __device__ inline T conj_if(bool conjugate, T value) {
  if constexpr (c10::is_complex<T>::value) {
    return conjugate ? std::conj(value) : value;
  } else {
    return value;
  }
}

// One triangle of a square matrix, seen through strides: swapped ones are the transpose.
template <typename scalar_t>
struct TriangleView {
  const scalar_t* data;
  int64_t size;
  int64_t row;
  int64_t column;
  bool upper;
  bool unit;  // ones on the diagonal, whatever is stored there
  bool conjugate;

  __host__ __device__ scalar_t at(int64_t i, int64_t j) const {
    return conj_if(conjugate, data[i * row + j * column]);
  }

  // Solves triangle * x = b in place.
  __host__ __device__ void solve(scalar_t* x, int64_t step) const {
    for (int64_t done = 0; done < size; ++done) {
      const int64_t i = upper ? size - 1 - done : done;
      scalar_t rest = x[i * step];
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? size : i); ++j) {
        rest -= at(i, j) * x[j * step];
      }
      x[i * step] = unit ? rest : rest / at(i, i);
    }
  }
};

// Offsets of the matrices of a batch, of any strides, in elements.
template <int N>
OffsetCalculator<N, uint64_t> batch_offsets(IntArrayRef batch,
                                            const std::array<IntArrayRef, N>& strides) {
  c10::SmallVector<int64_t, 8> sizes(batch.rbegin(), batch.rend());
  std::array<c10::SmallVector<int64_t, 8>, N> steps;
  std::array<const int64_t*, N> step_data;
  for (int i = 0; i < N; ++i) {
    const IntArrayRef of_batch = strides[i].slice(0, batch.size());
    steps[i].assign(of_batch.rbegin(), of_batch.rend());
    step_data[i] = steps[i].data();
  }
  return OffsetCalculator<N, uint64_t>(static_cast<int>(sizes.size()), sizes.data(),
                                       step_data.data());
}

IntArrayRef batch_of(const Tensor& matrices) {
  return matrices.sizes().slice(0, matrices.dim() - 2);
}

Tensor expand_batch(const Tensor& tensor, IntArrayRef batch, int64_t own_dims) {
  DimVector shape(batch);
  for (int64_t d = tensor.dim() - own_dims; d < tensor.dim(); ++d) shape.push_back(tensor.size(d));
  return tensor.expand(shape);
}

// B becomes X of op(A) X = B, or of X op(A) = B. A is what LAPACK would read: columns one after the
// other, whatever its strides say; `upper` and `transpose` are about that.
void triangular_solve_kernel(const Tensor& A, const Tensor& B, bool left, bool upper,
                             TransposeType transpose, bool unitriangular) {
  // Also where there is nothing to solve, like the CPU.
  TORCH_CHECK(A.scalar_type() == B.scalar_type(), "expected scalar type ", A.scalar_type(),
              " but found ", B.scalar_type());
  if (B.numel() == 0) return;
  const Tensor matrices = expand_batch(A, batch_of(B), 2);
  // X op(A) = B is op(A)^T X^T = B^T.
  const bool swapped = (transpose != TransposeType::NoTranspose) == left;
  const bool conjugate = transpose == TransposeType::ConjTranspose;
  const int64_t step = B.stride(left ? -2 : -1), next = B.stride(left ? -1 : -2);
  const int64_t count = B.size(left ? -1 : -2), size = A.size(-1);
  const auto offsets = batch_offsets<2>(batch_of(B), {matrices.strides(), B.strides()});
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(A.scalar_type(), "triangular_solve_cuda", [&] {
    const scalar_t* a = matrices.const_data_ptr<scalar_t>();
    scalar_t* b = B.mutable_data_ptr<scalar_t>();
    const TriangleView<scalar_t> triangle{
        nullptr,          size,          swapped ? size : 1, swapped ? 1 : size,
        upper != swapped, unitriangular, conjugate};
    for_each_index(B.device(), B.numel() / size, [=] GPU_LAMBDA(int64_t i) {
      const auto at = offsets.get(i / count);
      TriangleView<scalar_t> mine = triangle;
      mine.data = a + at[0];
      mine.solve(b + at[1] + (i % count) * next, step);
    });
  });
}

// B becomes X of op(P L U) X = B.
void lu_solve_kernel(const Tensor& LU, const Tensor& pivots, const Tensor& B,
                     TransposeType transpose) {
  if (B.numel() == 0) return;
  const Tensor factors = expand_batch(LU, batch_of(B), 2);
  const Tensor swaps = expand_batch(pivots, batch_of(B), 1);
  const bool swapped = transpose != TransposeType::NoTranspose;
  const bool conjugate = transpose == TransposeType::ConjTranspose;
  const int64_t step = B.stride(-2), next = B.stride(-1), count = B.size(-1), size = LU.size(-1);
  const int64_t swap_step = swaps.stride(-1);
  const auto offsets =
      batch_offsets<3>(batch_of(B), {factors.strides(), B.strides(), swaps.strides()});
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(LU.scalar_type(), "lu_solve_cuda", [&] {
    const scalar_t* lu = factors.const_data_ptr<scalar_t>();
    const int* pivot = swaps.const_data_ptr<int>();
    scalar_t* b = B.mutable_data_ptr<scalar_t>();
    const int64_t row = factors.stride(swapped ? -1 : -2);
    const int64_t column = factors.stride(swapped ? -2 : -1);
    for_each_index(B.device(), B.numel() / size, [=] GPU_LAMBDA(int64_t i) {
      const auto at = offsets.get(i / count);
      scalar_t* x = b + at[1] + (i % count) * next;
      const TriangleView<scalar_t> lower{lu + at[0], size, row, column, swapped, true, conjugate};
      const TriangleView<scalar_t> upper{lu + at[0], size, row, column, !swapped, false, conjugate};
      const auto exchange = [&](int64_t j) {
        const int64_t with = pivot[at[2] + j * swap_step] - 1;
        KERNEL_CHECK(with >= 0 && with < size,
                     "Pivots given to lu_solve must all be greater or equal to 1. "
                     "Did you properly pass the result of lu_factor?");
        const scalar_t kept = x[j * step];
        x[j * step] = x[with * step];
        x[with * step] = kept;
      };
      if (swapped) {
        upper.solve(x, step);
        lower.solve(x, step);
        for (int64_t j = size; j-- > 0;) exchange(j);
      } else {
        for (int64_t j = 0; j < size; ++j) exchange(j);
        lower.solve(x, step);
        upper.solve(x, step);
      }
    });
  });
}

// Each vector of operand 0, which begins as 0, 1, 2, ..., goes through the row exchanges of
// operand 1, counted from 1. The iterator runs over the vectors.
void unpack_pivots_kernel(TensorIterator& iter, const int64_t dim_size, const int64_t max_pivot) {
  if (iter.numel() == 0) return;
  const std::array<const int64_t*, 2> strides{iter.strides(0).data(), iter.strides(1).data()};
  const OffsetCalculator<2, uint64_t> offsets(iter.ndim(), iter.shape().data(), strides.data());
  char* permutations = static_cast<char*>(iter.data_ptr(0));
  const char* pivots = static_cast<const char*>(iter.data_ptr(1));
  for_each_index(iter.device(0), iter.numel(), [=] GPU_LAMBDA(int64_t i) {
    const auto at = offsets.get(i);
    auto* permutation = reinterpret_cast<int64_t*>(permutations + at[0]);
    const auto* pivot = reinterpret_cast<const int32_t*>(pivots + at[1]);
    for (int64_t j = 0; j < dim_size; ++j) {
      const int64_t with = pivot[j] - 1;
      KERNEL_CHECK(with >= 0 && with < max_pivot,
                   "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                   "Did you properly pass the result of lu_factor?");
      const int64_t kept = permutation[j];
      permutation[j] = permutation[with];
      permutation[with] = kept;
    }
  });
}

}  // namespace

REGISTER_DISPATCH(triangular_solve_stub, &triangular_solve_kernel)
REGISTER_DISPATCH(lu_solve_stub, &lu_solve_kernel)
REGISTER_DISPATCH(unpack_pivots_stub, &unpack_pivots_kernel)

}  // namespace at::native
