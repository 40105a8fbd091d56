// Compressed sparse tensors (CSR, CSC, BSR, BSC) on musa: sums and matrix products, by way of the
// coordinates that stand behind them.

#include <torch_musa/ops/add_native.h>
#include <torch_musa/ops/addmm_native.h>
#include <torch_musa/ops/addmv_native.h>

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>

#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

bool compressed(const Tensor& tensor) { return at::sparse_csr::is_sparse_compressed(tensor); }

/// beta * self + alpha * (mat1 @ mat2), one of the two compressed.
Tensor product_sum(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                   const Scalar& alpha) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.layout() == kStrided && compressed(mat1) != compressed(mat2) &&
                                  (mat1.layout() == kStrided || mat2.layout() == kStrided),
                              "addmm: on musa one matrix may be sparse and the others have to be ",
                              "dense, but the layouts are ", self.layout(), ", ", mat1.layout(),
                              " and ", mat2.layout());
  if (compressed(mat1)) {
    return at::addmm(self, mat1.to_sparse(), mat2, beta, alpha);
  }
  // (A B)^T = B^T A^T puts the sparse matrix first.
  const Tensor start = self.expand({mat1.size(0), mat2.size(1)});
  return at::addmm(start.t(), mat2.to_sparse().t(), mat1.t(), beta, alpha).t();
}

}  // namespace

Tensor& AddCompressedOut(const Tensor& self, const Tensor& other, const Scalar& alpha,
                         Tensor& out) {
  const c10::musa::MUSAGuard guard(self.device());
  if (!compressed(self)) {
    TORCH_CHECK(self.layout() == kStrided, "add: cannot add tensors of layouts ", self.layout(),
                " and ", other.layout());
    const Tensor sum = at::add(self, other.to_sparse(), alpha);
    at::native::resize_output(out, sum.sizes());
    return out.copy_(sum);
  }
  TORCH_CHECK(self.layout() == other.layout() && self.layout() == out.layout(),
              "add: expected one layout, but got ", self.layout(), ", ", other.layout(), " and ",
              out.layout());
  TORCH_CHECK_NOT_IMPLEMENTED(self.layout() == kSparseCsr || self.layout() == kSparseCsc,
                              "add: no kernel for layout ", self.layout(), " on musa");
  const Tensor sum = at::add(self.to_sparse(), other.to_sparse(), alpha).to_sparse(self.layout());
  auto [compressed_indices, plain_indices] = at::sparse_csr::getCompressedPlainIndices(sum);
  const ScalarType index = at::sparse_csr::getCompressedPlainIndices(self).first.scalar_type();
  at::sparse_csr::get_sparse_csr_impl(out)->set_member_tensors(
      compressed_indices.to(index), plain_indices.to(index), sum.values().to(out.scalar_type()),
      sum.sizes());
  return out;
}

Tensor& AddmmCompressedOut(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                           const Scalar& beta, const Scalar& alpha, Tensor& out) {
  const Tensor sum = product_sum(self, mat1, mat2, beta, alpha);
  at::native::resize_output(out, sum.sizes());
  return out.copy_(sum);
}

Tensor& AddmvCompressedOut(const Tensor& self, const Tensor& mat, const Tensor& vec,
                           const Scalar& beta, const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(mat.dim() == 2 && vec.dim() == 1, "addmv: expected a matrix and a vector, but got ",
              mat.dim(), "D and ", vec.dim(), "D");
  TORCH_CHECK(mat.size(1) == vec.size(0), "size mismatch, got input (", mat.size(0), "), mat (",
              mat.size(0), "x", mat.size(1), "), vec (", vec.size(0), ")");
  const Tensor start = self.expand({mat.size(0)}).unsqueeze(1);
  const Tensor sum = product_sum(start, mat, vec.unsqueeze(1), beta, alpha).squeeze(1);
  at::native::resize_output(out, sum.sizes());
  return out.copy_(sum);
}

}  // namespace at::musa
