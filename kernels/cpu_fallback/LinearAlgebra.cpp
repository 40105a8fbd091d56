// Factorizations and solvers, computed by LAPACK on the CPU.
//
// The boxed fallback would not do. Upstream's meta functions promise column-major factors, which
// only a kernel that fills the output it is given keeps. And upstream's determinants and solvers
// factorize A or its transpose, whichever LAPACK reads without a copy, by asking whether A is
// contiguous; their gradients ask the same question of the device tensor.
#include "torch_musa/csrc/aten/FallbackCounts.h"

#include <torch_musa/ops/_linalg_det_native.h>
#include <torch_musa/ops/_linalg_eigh_native.h>
#include <torch_musa/ops/_linalg_slogdet_native.h>
#include <torch_musa/ops/_linalg_solve_ex_native.h>
#include <torch_musa/ops/_linalg_svd_native.h>
#include <torch_musa/ops/linalg_cholesky_ex_native.h>
#include <torch_musa/ops/linalg_inv_ex_native.h>
#include <torch_musa/ops/linalg_lu_factor_ex_native.h>
#include <torch_musa/ops/linalg_qr_native.h>

#include <ATen/ops/_linalg_det.h>
#include <ATen/ops/_linalg_eigh.h>
#include <ATen/ops/_linalg_slogdet.h>
#include <ATen/ops/_linalg_solve_ex.h>
#include <ATen/ops/_linalg_svd.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_inv_ex.h>
#include <ATen/ops/linalg_lu_factor_ex.h>
#include <ATen/ops/linalg_qr.h>

#include <tuple>
#include <utility>

namespace at::musa {
namespace {

// Matrices on the CPU that are contiguous exactly where those on the device are.
Tensor host_matrices(const Tensor& matrices) {
  const Tensor host = matrices.cpu();
  return matrices.is_contiguous() ? host : host.mT().contiguous().mT();
}

template <size_t... I, class... Out>
void copy_each(const std::tuple<Out...>& results, std::index_sequence<I...>, const Out&... outs) {
  (outs.copy_(std::get<I>(results)), ...);
}

// Counts the trip and copies the results, in order, to the outputs.
template <class... Out>
void deliver(const char* op, const std::tuple<Out...>& results, const Out&... outs) {
  count_cpu_fallback(op);
  copy_each(results, std::index_sequence_for<Out...>(), outs...);
}

}  // namespace

TORCH_IMPL_FUNC(HostCholesky)
(const Tensor& self, bool upper, bool check_errors, const Tensor& L, const Tensor& info) {
  deliver("linalg_cholesky_ex.L", at::linalg_cholesky_ex(host_matrices(self), upper, check_errors),
          L, info);
}

TORCH_IMPL_FUNC(HostInverse)
(const Tensor& A, bool check_errors, const Tensor& inverse, const Tensor& info) {
  deliver("linalg_inv_ex.inverse", at::linalg_inv_ex(host_matrices(A), check_errors), inverse,
          info);
}

TORCH_IMPL_FUNC(HostQr)
(const Tensor& A, c10::string_view mode, const Tensor& Q, const Tensor& R) {
  deliver("linalg_qr.out", at::linalg_qr(host_matrices(A), mode), Q, R);
}

TORCH_IMPL_FUNC(HostLuFactor)
(const Tensor& A, bool pivot, bool check_errors, const Tensor& LU, const Tensor& pivots,
 const Tensor& info) {
  deliver("linalg_lu_factor_ex.out", at::linalg_lu_factor_ex(host_matrices(A), pivot, check_errors),
          LU, pivots, info);
}

TORCH_IMPL_FUNC(HostDet)
(const Tensor& A, const Tensor& result, const Tensor& LU, const Tensor& pivots) {
  deliver("_linalg_det.result", at::_linalg_det(host_matrices(A)), result, LU, pivots);
}

TORCH_IMPL_FUNC(HostSlogdet)
(const Tensor& A, const Tensor& sign, const Tensor& logabsdet, const Tensor& LU,
 const Tensor& pivots) {
  deliver("_linalg_slogdet.sign", at::_linalg_slogdet(host_matrices(A)), sign, logabsdet, LU,
          pivots);
}

TORCH_IMPL_FUNC(HostSolve)
(const Tensor& A, const Tensor& B, bool left, bool check_errors, const Tensor& result,
 const Tensor& LU, const Tensor& pivots, const Tensor& info) {
  deliver("_linalg_solve_ex.result",
          at::_linalg_solve_ex(host_matrices(A), B.cpu(), left, check_errors), result, LU, pivots,
          info);
}

TORCH_IMPL_FUNC(HostEigh)
(const Tensor& A, c10::string_view UPLO, bool compute_v, const Tensor& eigenvalues,
 const Tensor& eigenvectors) {
  deliver("_linalg_eigh.eigenvalues", at::_linalg_eigh(host_matrices(A), UPLO, compute_v),
          eigenvalues, eigenvectors);
}

TORCH_IMPL_FUNC(HostSvd)
(const Tensor& A, bool full_matrices, bool compute_uv, std::optional<c10::string_view> driver,
 const Tensor& U, const Tensor& S, const Tensor& Vh) {
  deliver("_linalg_svd.U", at::_linalg_svd(host_matrices(A), full_matrices, compute_uv, driver), U,
          S, Vh);
}

}  // namespace at::musa
