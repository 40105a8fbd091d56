// muDNN: matrix products. Declares the part of ::musa::dnn that op code uses for mm, bmm, dot and
// friends.
#pragma once

#include "mudnn_base.h"

namespace musa::dnn {

// Scales of a low-precision product: out = scale_d * ((scale_a * l) @ (scale_b * r) + scale_c * c).
// A default-constructed Tensor stands for "no scale"; each scale holds one FLOAT.
class MUDNN_API MatMulLtParam {
 public:
  Status SetScale(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d);
  // Where the largest magnitude of the unscaled result is stored (one FLOAT).
  Status SetAmaxD(const Tensor& amax);

  const Tensor& scale_a() const { return scale_a_; }
  const Tensor& scale_b() const { return scale_b_; }
  const Tensor& scale_c() const { return scale_c_; }
  const Tensor& scale_d() const { return scale_d_; }
  const Tensor& amax_d() const { return amax_d_; }

 private:
  Tensor scale_a_;
  Tensor scale_b_;
  Tensor scale_c_;
  Tensor scale_d_;
  Tensor amax_d_;
};

namespace detail {

// What MatMul and BatchMatMul share: out = alpha * op(l) @ op(r) + beta * c + gamma * bias, where
// op transposes the last two dimensions on request.
class MUDNN_API GemmBase {
 public:
  using ComputeMode = ::musa::dnn::ComputeMode;

  Status SetComputeMode(ComputeMode mode);
  Status SetTranspose(bool left, bool right);
  Status SetAlpha(double alpha);
  Status SetBeta(double beta);
  Status SetGamma(double gamma);

 protected:
  Status RunGemm(Handle& h, const char* entry, int rank, Tensor& out, const Tensor& l,
                 const Tensor& r, const Tensor& c, const Tensor& bias,
                 const MatMulLtParam* param) const;

 private:
  ComputeMode compute_mode_ = ComputeMode::SCALAR;
  bool transpose_left_ = false;
  bool transpose_right_ = false;
  double alpha_ = 1.0;
  double beta_ = 0.0;
  double gamma_ = 1.0;
};

}  // namespace detail

// Product of two matrices. Operands are rank 2, rows contiguous (SetTranspose says that the stored
// matrix is to be read transposed) with a leading dimension of at least the row length.
// DOUBLE: NOT_SUPPORTED. Any other layout: INVALID_PARAMETER.
class MUDNN_API MatMul : public detail::GemmBase {
 public:
  // out = alpha * l @ r + beta * out.
  Status Run(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
             const MemoryMaintainer& maintainer = nullptr) const;
  // out = alpha * l @ r + beta * out + gamma * bias; bias has one value per column of out.
  Status RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                        const Tensor& bias, const MemoryMaintainer& maintainer = nullptr) const;
  // out = alpha * l @ r + beta * c + gamma * bias.
  Status RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r, const Tensor& c,
                        const Tensor& bias, const MemoryMaintainer& maintainer = nullptr) const;
  // As above, scaled.
  Status RunLt(Handle& h, Tensor& out, const Tensor& l, const Tensor& r, const Tensor& c,
               const Tensor& bias, const MatMulLtParam& param,
               const MemoryMaintainer& maintainer = nullptr) const;
};

// The same product for every matrix of a batch. Operands are rank 3.
class MUDNN_API BatchMatMul : public detail::GemmBase {
 public:
  Status Run(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
             const MemoryMaintainer& maintainer = nullptr) const;
  Status RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                        const Tensor& bias, const MemoryMaintainer& maintainer = nullptr) const;
  Status RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r, const Tensor& c,
                        const Tensor& bias, const MemoryMaintainer& maintainer = nullptr) const;
  Status RunLt(Handle& h, Tensor& out, const Tensor& l, const Tensor& r, const Tensor& c,
               const Tensor& bias, const MatMulLtParam& param,
               const MemoryMaintainer& maintainer = nullptr) const;
};

// Inner product of two vectors of equal length; out holds one element. DOUBLE: NOT_SUPPORTED.
class MUDNN_API Dot {
 public:
  using ComputeMode = ::musa::dnn::ComputeMode;

  Status SetComputeMode(ComputeMode mode);
  Status Run(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
             const MemoryMaintainer& maintainer = nullptr) const;

 private:
  ComputeMode compute_mode_ = ComputeMode::SCALAR;
};

}  // namespace musa::dnn
