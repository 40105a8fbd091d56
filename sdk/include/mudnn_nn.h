// muDNN: the layers of a neural network. Declares the part of ::musa::dnn that op code uses for
// convolution, pooling, resampling, normalization and dropout.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "mudnn_base.h"

namespace musa::dnn {

// Two-dimensional convolution (cross-correlation). Images are NCHW or NHWC, filters (out, in /
// groups, kh, kw) in the same order of dimensions. Any other number of spatial dimensions:
// NOT_SUPPORTED.
class MUDNN_API Convolution {
 public:
  using ComputeMode = ::musa::dnn::ComputeMode;

  // What Run, RunBwdData and RunBwdFilter can be asked for. DIRECT refuses groups > 1 with
  // NOT_SUPPORTED, and yet is what GetRecommendForwardAlgorithm names for them: callers must be
  // ready to try another one. WINOGRAD_NONFUSED refuses anything but a dense 3x3 kernel with unit
  // stride.
  enum class Algorithm { IMPLICIT_GEMM, DIRECT, WINOGRAD_NONFUSED, GEMM };
  enum class AlgorithmBwdData { IMPLICIT_GEMM, DIRECT, WINOGRAD_NONFUSED, GEMM };
  enum class AlgorithmBwdFilter { IMPLICIT_GEMM, DIRECT, WINOGRAD_NONFUSED, GEMM };

  class MUDNN_API FusedActivationDesc {
   public:
    enum class Mode { IDENTITY, RELU, SILU };
    Status SetMode(Mode mode);
    Mode mode() const { return mode_; }

   private:
    Mode mode_ = Mode::IDENTITY;
  };

  // One value per spatial dimension each.
  Status SetNdInfo(int n, const int* pad, const int* stride, const int* dilation);
  Status SetNdInfo(std::initializer_list<int> pad, std::initializer_list<int> stride,
                   std::initializer_list<int> dilation);
  Status SetGroups(int groups);
  Status SetComputeMode(ComputeMode mode);

  Status GetRecommendForwardAlgorithm(Handle& h, Algorithm& algo, const Tensor& out,
                                      const Tensor& in, const Tensor& w) const;
  Status GetRecommendBackwardDataAlgorithm(Handle& h, AlgorithmBwdData& algo, const Tensor& grad_in,
                                           const Tensor& grad_out, const Tensor& w) const;
  Status GetRecommendBackwardFilterAlgorithm(Handle& h, AlgorithmBwdFilter& algo,
                                             const Tensor& grad_w, const Tensor& in,
                                             const Tensor& grad_out) const;

  Status Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& w, Algorithm algo,
             const MemoryMaintainer& maintainer) const;
  // out = act(conv(in, w) + bias + add); bias and add may be absent. bias with groups > 1:
  // NOT_SUPPORTED.
  Status RunFusion(Handle& h, Tensor& out, const Tensor& in, const Tensor& w, const Tensor& bias,
                   const Tensor& add, const FusedActivationDesc& act, Algorithm algo,
                   const MemoryMaintainer& maintainer) const;
  // Gradient with respect to the image; also the transposed convolution of grad_out.
  Status RunBwdData(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& w,
                    AlgorithmBwdData algo, const MemoryMaintainer& maintainer) const;
  // Gradient with respect to the filter.
  Status RunBwdFilter(Handle& h, Tensor& grad_w, const Tensor& in, const Tensor& grad_out,
                      AlgorithmBwdFilter algo, const MemoryMaintainer& maintainer) const;

 private:
  Status RunForward(Handle& h, const char* entry, Tensor& out, const Tensor& in, const Tensor& w,
                    const Tensor& bias, const Tensor& add, const FusedActivationDesc& act,
                    Algorithm algo) const;

  std::vector<int64_t> pad_;
  std::vector<int64_t> stride_;
  std::vector<int64_t> dilation_;
  int64_t groups_ = 1;
  ComputeMode compute_mode_ = ComputeMode::SCALAR;
};

// Two-dimensional pooling of NCHW or NHWC images.
class MUDNN_API Pooling {
 public:
  enum class Mode {
    MAXPOOL,
    AVGPOOL_COUNT_PAD,
    AVGPOOL_COUNT_WITHOUT_PAD,
    ADAPTIVE_AVGPOOL,
    ADAPTIVE_MAXPOOL,
  };

  Status SetMode(Mode mode);
  // One value per spatial dimension each. The adaptive modes read the window off the operands.
  Status SetNdInfo(int n, const int* kernel, const int* pad, const int* stride,
                   const int* dilation);
  Status SetNdInfo(std::initializer_list<int> kernel, std::initializer_list<int> pad,
                   std::initializer_list<int> stride, std::initializer_list<int> dilation);
  // Replaces the number of elements that an average is divided by.
  Status SetDivisor(int divisor);

  // indices (INT64, the shape of out) is required by the maximum modes: the position of each
  // maximum within its image plane. The average modes take a default-constructed Tensor.
  Status Run(Handle& h, Tensor& out, const Tensor& in, Tensor& indices) const;
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& indices) const;

 private:
  std::optional<Mode> mode_;
  std::vector<int64_t> kernel_;
  std::vector<int64_t> pad_;
  std::vector<int64_t> stride_;
  std::vector<int64_t> dilation_;
  std::optional<int64_t> divisor_;
};

// Resamples images of one (NCW), two (NCHW, NHWC) or three (NCDHW, NDHWC) spatial dimensions.
// Operands are contiguous and of one format; NEAREST and NEAREST_EXACT also take UINT8. BICUBIC and
// Antialias exist for two spatial dimensions, Antialias for LINEAR and BICUBIC.
class MUDNN_API Interpolate {
 public:
  enum class Mode { NEAREST, NEAREST_EXACT, LINEAR, BICUBIC };

  Status SetMode(Mode mode);
  // One number per spatial dimension, slowest first. Run: input size over output size. RunBackward:
  // output size over input size, as torch_musa hands it over. Read unless the corners are aligned.
  Status SetScaleInfo(int n, const float* scales);
  Status SetScaleInfo(std::initializer_list<float> scales);
  Status SetAlignCorners(bool align);  // of LINEAR and BICUBIC; default false
  Status SetAntialias(bool antialias);

  Status Run(Handle& h, Tensor& out, const Tensor& in) const;
  // Gradient with respect to Run's input; floating point.
  Status RunBackward(Handle& h, Tensor& grad_in, const Tensor& grad_out) const;

 private:
  std::optional<Mode> mode_;
  std::vector<float> scales_;
  bool align_corners_ = false;
  bool antialias_ = false;
};

// Batch normalization over every dimension but the second. Operands are contiguous, rank 2 or more;
// statistics have one value per channel.
class MUDNN_API BatchNorm {
 public:
  enum class Mode { PER_ACTIVATION, PER_CHANNEL };

  Status SetMode(Mode mode);
  Status SetEpsilon(double epsilon);
  Status SetTraining(bool training);

  // Inference: normalizes with the given mean and variance. w and b may be absent.
  Status RunPure(Handle& h, Tensor& out, const Tensor& in, const Tensor& mean, const Tensor& var,
                 const Tensor& w, const Tensor& b) const;
  // Training: normalizes with the batch's own statistics and keeps them in mean and var for RunBwd;
  // running_mean and running_var, unless absent, move towards the batch's mean and unbiased
  // variance by momentum.
  // (?) var receives 1 / sqrt(variance + epsilon): callers store it as "save_invstd" and hand it
  // back to RunBwd untouched.
  Status RunComposite(Handle& h, Tensor& out, const Tensor& in, Tensor& running_mean,
                      Tensor& running_var, Tensor& mean, Tensor& var, const Tensor& w,
                      const Tensor& b, double momentum, const MemoryMaintainer& maintainer) const;
  // Training mode takes what RunComposite kept, inference mode the running mean and variance.
  // dmean, dvar, dgamma, dbeta and gamma may be absent.
  Status RunBwd(Handle& h, Tensor& dx, Tensor& dmean, Tensor& dvar, Tensor& dgamma, Tensor& dbeta,
                const Tensor& x, const Tensor& dy, const Tensor& mean, const Tensor& var,
                const Tensor& gamma, const MemoryMaintainer& maintainer) const;

 private:
  std::optional<Mode> mode_;
  double epsilon_ = 1e-5;
  bool training_ = false;
};

// Layer normalization over the trailing dimensions named by SetAxis. Operands are contiguous. mean
// and rstd hold one value per normalized slice. gamma and beta may be absent, but only both
// together.
class MUDNN_API LayerNorm {
 public:
  enum class VarMode { WELFORD, DIRECT };

  Status SetAxis(int n, const int* axes);
  Status SetEpsilon(double epsilon);
  Status SetVarMode(VarMode mode);

  Status Run(Handle& h, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in,
             const Tensor& gamma, const Tensor& beta, const MemoryMaintainer& maintainer) const;
  // dgamma, dbeta and gamma may be absent.
  Status RunBwd(Handle& h, Tensor& dx, Tensor& dgamma, Tensor& dbeta, const Tensor& dy,
                const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& gamma,
                const MemoryMaintainer& maintainer) const;

 private:
  std::vector<int> axes_;
  double epsilon_ = 1e-5;
  VarMode var_mode_ = VarMode::WELFORD;
};

// Normalization by the root mean square over the trailing dimensions named by SetAxis (negative
// axes count from the end). Operands are contiguous. inv_var holds one value per normalized slice,
// 1 / sqrt(mean(in ^ 2) + epsilon), in in's type or FLOAT. gamma may be absent. DOUBLE:
// NOT_SUPPORTED.
class MUDNN_API RMSNorm {
 public:
  enum class VarMode { WELFORD, DIRECT };

  Status SetAxis(int n, const int* axes);
  Status SetEpsilon(double epsilon);
  Status SetVarMode(VarMode mode);

  Status Run(Handle& h, Tensor& out, Tensor& inv_var, const Tensor& in, const Tensor& gamma) const;
  // rstd is what Run left in inv_var. dgamma and gamma may be absent.
  Status RunBwd(Handle& h, Tensor& dx, Tensor& dgamma, const Tensor& dy, const Tensor& in,
                const Tensor& rstd, const Tensor& gamma, const MemoryMaintainer& maintainer) const;

 private:
  std::vector<int> axes_;
  double epsilon_ = 1e-5;
  VarMode var_mode_ = VarMode::WELFORD;
};

// Normalization of groups of channels. Operands are contiguous; mean and rstd hold one value per
// sample and group. gamma and beta (one value per channel) may be absent.
class MUDNN_API GroupNorm {
 public:
  // The dimension of the channels; only 1 is supported.
  Status SetAxis(int axis);
  Status SetEpsilon(double epsilon);
  Status SetGroup(int group);

  Status Run(Handle& h, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in,
             const Tensor& gamma, const Tensor& beta) const;

 private:
  int axis_ = 1;
  double epsilon_ = 1e-5;
  int group_ = 1;
};

// Zeroes elements with probability P and multiplies the others by 1 / (1 - P). Element i is decided
// by the first draw of Philox subsequence i from the offset on, so equal (seed, offset) give an
// equal mask.
class MUDNN_API Dropout {
 public:
  Status SetP(double p);
  // The factor of RunDropoutBwd.
  Status SetScale(double scale);
  // By value, or read from device memory when the call's turn on the stream comes (graph capture).
  Status SetSeed(uint64_t seed);
  Status SetSeed(const uint64_t* device_seed);
  Status SetOffset(uint64_t offset);
  Status SetOffset(const uint64_t* device_offset, uint64_t added);

  // mask (BOOL) is true where an element is kept.
  Status RunDropout(Handle& h, Tensor& out, const Tensor& in, Tensor& mask) const;
  Status RunDropoutBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out,
                       const Tensor& mask) const;

 private:
  double p_ = 0.5;
  double scale_ = 1.0;
  uint64_t seed_ = 0;
  uint64_t offset_ = 0;
  const uint64_t* device_seed_ = nullptr;
  const uint64_t* device_offset_ = nullptr;
};

}  // namespace musa::dnn
