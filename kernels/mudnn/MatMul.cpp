#include <torch_musa/ops/_addmm_activation_native.h>
#include <torch_musa/ops/addmm_native.h>
#include <torch_musa/ops/addmv_native.h>
#include <torch_musa/ops/baddbmm_native.h>
#include <torch_musa/ops/bmm_native.h>
#include <torch_musa/ops/dot_native.h>
#include <torch_musa/ops/mm_native.h>
#include <torch_musa/ops/vdot_native.h>

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include "kernels/mudnn/Layout.h"
#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

// muDNN's MatMul refuses DOUBLE and has no integers; those, and complex, go to a kernel of our own.
bool MudnnMultiplies(ScalarType dtype) {
  return dtype == kFloat || dtype == kHalf || dtype == kBFloat16;
}

void CheckMultipliable(ScalarType dtype, const char* op) {
  const bool supported = MudnnMultiplies(dtype) || dtype == kDouble || isComplexType(dtype) ||
                         isIntegralType(dtype, /*includeBool=*/false);
  CheckImplemented(supported, dtype, op);
}

// A matrix, or a batch of them, as muDNN takes it: dense rows, or the transpose of dense rows.
// Everything else is copied.
class MatrixOperand {
 public:
  explicit MatrixOperand(const Tensor& matrix) : dense_(matrix), transposed_(false) {
    if (matrix.is_contiguous()) return;
    const Tensor flipped = matrix.transpose(-2, -1);
    transposed_ = flipped.is_contiguous();
    dense_ = transposed_ ? flipped : matrix.contiguous();
  }

  bool transposed() const { return transposed_; }
  muTensor describe() const { return DescribeDense(dense_); }

 private:
  Tensor dense_;
  bool transposed_;
};

template <class Gemm>
void Configure(Gemm& gemm, const MatrixOperand& l, const MatrixOperand& r, ScalarType dtype,
               const Scalar& alpha) {
  CHECK_MUDNN_STATUS(gemm.SetComputeMode(ComputeModeOf(dtype)), "SetComputeMode");
  CHECK_MUDNN_STATUS(gemm.SetTranspose(l.transposed(), r.transposed()), "SetTranspose");
  CHECK_MUDNN_STATUS(gemm.SetAlpha(alpha.to<double>()), "SetAlpha");
}

// out = alpha * left @ right + beta * out, for matrices (MatMul) or batches of them (BatchMatMul).
template <class Gemm>
void MudnnMultiply(const Tensor& left, const Tensor& right, const Scalar& beta, const Scalar& alpha,
                   const Tensor& out) {
  const MatrixOperand l(left), r(right);
  const DenseOutput result = beta.equal(0) ? DenseOutput(out) : DenseOutput::accumulating(out);

  muTensor mt_out = result.describe();
  Gemm gemm;
  Configure(gemm, l, r, out.scalar_type(), alpha);
  CHECK_MUDNN_STATUS(gemm.SetBeta(beta.to<double>()), "SetBeta");
  CHECK_MUDNN_STATUS(
      gemm.Run(GetMudnnHandle(), mt_out, l.describe(), r.describe(), InternalMemAlloc), "MatMul");
  result.finish();
}

// out = alpha * left @ right + beta * bias, bias being one row: the epilogue of a linear layer.
void MudnnMultiplyAddBias(const Tensor& left, const Tensor& right, const Tensor& bias,
                          const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  const MatrixOperand l(left), r(right);
  const Tensor row = bias.contiguous();
  const DenseOutput result(out);

  muTensor mt_out = result.describe();
  ::musa::dnn::MatMul gemm;
  Configure(gemm, l, r, out.scalar_type(), alpha);
  CHECK_MUDNN_STATUS(gemm.SetGamma(beta.to<double>()), "SetGamma");
  CHECK_MUDNN_STATUS(gemm.RunWithBiasAdd(GetMudnnHandle(), mt_out, l.describe(), r.describe(),
                                         DescribeDense(row), InternalMemAlloc),
                     "MatMul with bias");
  result.finish();
}

// out = alpha * left @ right + beta * out for the types that muDNN does not multiply.
void PortedMultiply(const Tensor& left, const Tensor& right, const Scalar& beta_in,
                    const Scalar& alpha_in, const Tensor& out) {
  // As on the CPU, the scalars are read in the type of the product.
  const bool integral = isIntegralType(out.scalar_type(), /*includeBool=*/false);
  const Scalar beta =
      integral ? Scalar(beta_in.to<int64_t>()) : CheckedScalar(beta_in, out.scalar_type());
  const Scalar alpha =
      integral ? Scalar(alpha_in.to<int64_t>()) : CheckedScalar(alpha_in, out.scalar_type());
  // mm and its kin are let through by the conjugate fallback, so lazily conjugated operands arrive
  // here.
  const Tensor l = left.resolve_conj().resolve_neg();
  const Tensor r = right.resolve_conj().resolve_neg();
  if (beta.equal(0) && alpha.equal(1) && !out.is_conj() && !out.is_neg()) {
    matmul_kernel(out, l, r);
    return;
  }
  Tensor product = at::empty(out.sizes(), out.options());
  matmul_kernel(product, l, r);
  if (beta.equal(0)) {
    out.copy_(alpha.equal(1) ? product : product.mul_(alpha));
  } else {
    out.mul_(beta).add_(product, alpha);
  }
}

void CheckSameDtype(const Tensor& left, const Tensor& right) {
  TORCH_CHECK(left.dtype() == right.dtype(),
              "expected m1 and m2 to have the same dtype, but got: ", left.dtype(),
              " != ", right.dtype());
}

// out = alpha * left @ right + beta * self, where self broadcasts to out. With beta 0 self is not
// read: it may hold NaN.
template <class Gemm>
void Multiply(const Tensor& self, const Tensor& left, const Tensor& right, const Scalar& beta,
              const Scalar& alpha, const Tensor& out, const char* op) {
  if (out.numel() == 0) return;
  CheckSameDtype(left, right);
  if (!beta.equal(0) && !out.is_same(self)) out.copy_(self);
  if (left.numel() == 0) {  // an empty sum
    beta.equal(0) ? out.zero_() : out.mul_(beta);
    return;
  }
  CheckMultipliable(out.scalar_type(), op);
  if (MudnnMultiplies(out.scalar_type())) {
    MudnnMultiply<Gemm>(left, right, beta, alpha, out);
  } else {
    PortedMultiply(left, right, beta, alpha, out);
  }
}

void Addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha, const Tensor& out) {
  const bool bias_row = self.dim() == 1 && self.numel() == out.size(1) && !beta.equal(0) &&
                        self.scalar_type() == out.scalar_type();
  if (bias_row && MudnnMultiplies(out.scalar_type()) && out.numel() != 0 && mat1.numel() != 0) {
    CheckSameDtype(mat1, mat2);
    MudnnMultiplyAddBias(mat1, mat2, self, beta, alpha, out);
    return;
  }
  const auto addend = expand_size(self, {mat1.size(0), mat2.size(1)}, "addmm_out");
  Multiply<::musa::dnn::MatMul>(*addend, mat1, mat2, beta, alpha, out, "addmm_impl");
}

void CheckDotOperands(const Tensor& self, const Tensor& other, const char* op) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(),
              "D and ", other.dim(), "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), op,
              " : expected both vectors to have same dtype, but found ", self.scalar_type(),
              " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [",
              self.numel(), "] and src [", other.numel(),
              "] to have the same number of elements, but got ", self.numel(), " and ",
              other.numel(), " elements respectively");
}

Tensor InnerProduct(const Tensor& self, const Tensor& other, const char* op) {
  CheckMultipliable(self.scalar_type(), op);
  const c10::musa::MUSAGuard guard(self.device());
  if (self.numel() == 0) return at::zeros({}, self.options());
  Tensor result = at::empty({}, self.options());
  if (!MudnnMultiplies(self.scalar_type())) {
    PortedMultiply(self.unsqueeze(0), other.unsqueeze(1), 0, 1, result.view({1, 1}));
    return result;
  }
  const Tensor l = self.contiguous(), r = other.contiguous();
  muTensor mt_result = CreateMUTensor(result);
  ::musa::dnn::Dot dot;
  CHECK_MUDNN_STATUS(dot.SetComputeMode(ComputeModeOf(self.scalar_type())), "SetComputeMode");
  CHECK_MUDNN_STATUS(
      dot.Run(GetMudnnHandle(), mt_result, DescribeDense(l), DescribeDense(r), InternalMemAlloc),
      "Dot");
  return result;
}

}  // namespace

TORCH_IMPL_FUNC(MmOut)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  Multiply<::musa::dnn::MatMul>(out, self, mat2, 0, 1, out, "addmm_impl");
}

TORCH_IMPL_FUNC(AddmmOut)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
 const Scalar& alpha, const Tensor& out) {
  Addmm(self, mat1, mat2, beta, alpha, out);
}

TORCH_IMPL_FUNC(AddmmActivationOut)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
 const Scalar& alpha, bool use_gelu, const Tensor& out) {
  Addmm(self, mat1, mat2, beta, alpha, out);
  Tensor activated = out;
  use_gelu ? at::gelu_(activated) : at::relu_(activated);
}

TORCH_IMPL_FUNC(AddmvOut)
(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha,
 const Tensor& out) {
  const auto addend = expand_size(self, {mat.size(0)}, "addmv_out");
  // A vector is a matrix of one column; in-place, the addend must still be recognized as the
  // output.
  const Tensor column = out.unsqueeze(1);
  const Tensor& column_of_addend = out.is_same(*addend) ? column : addend->unsqueeze(1);
  Multiply<::musa::dnn::MatMul>(column_of_addend, mat, vec.unsqueeze(1), beta, alpha, column,
                                "addmv_impl");
}

TORCH_IMPL_FUNC(BmmOut)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  Multiply<::musa::dnn::BatchMatMul>(out, self, mat2, 0, 1, out, "bmm");
}

TORCH_IMPL_FUNC(BaddbmmOut)
(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
 const Scalar& alpha, const Tensor& out) {
  const auto addend =
      expand_size(self, {batch1.size(0), batch1.size(1), batch2.size(2)}, "baddbmm");
  Multiply<::musa::dnn::BatchMatMul>(*addend, batch1, batch2, beta, alpha, out, "baddbmm");
}

Tensor Dot(const Tensor& self, const Tensor& tensor) {
  CheckDotOperands(self, tensor, "dot");
  // Both conjugated: as on the CPU, so is the result, and as lazily.
  if (self.is_conj() && tensor.is_conj()) {
    return InnerProduct(self.conj(), tensor.conj(), "dot").conj();
  }
  return InnerProduct(self, tensor, "dot");
}

Tensor Vdot(const Tensor& self, const Tensor& other) {
  if (!self.is_complex()) return Dot(self, other);
  CheckDotOperands(self, other, "vdot");
  if (!self.is_conj() && other.is_conj()) return InnerProduct(self, other.conj(), "vdot").conj();
  return InnerProduct(self.conj(), other, "vdot");
}

}  // namespace at::musa
