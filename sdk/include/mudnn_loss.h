// muDNN: losses. NONE writes one value per sample, MEAN and SUM write one element.
// Without SetReductionMode they do not run: INVALID_PARAMETER.
#pragma once

#include <cstdint>
#include <optional>

#include "mudnn_base.h"

namespace musa::dnn {

// Negative log likelihood of class indices. in is (N, C) or (N, C, H, W), target INT64 without the
// C.
class MUDNN_API NLLLoss {
 public:
  enum class Mode { NONE, MEAN, SUM };

  Status SetReductionMode(Mode mode);
  Status SetIgnoreIndex(int64_t index);

  // total_weight holds one element: the sum of the weights of the targets counted. weight may be
  // absent.
  Status Run(Handle& h, Tensor& out, Tensor& total_weight, const Tensor& in, const Tensor& target,
             const Tensor& weight, const MemoryMaintainer& maintainer) const;
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& target,
                const Tensor& weight, const Tensor& total_weight,
                const MemoryMaintainer& maintainer) const;

 private:
  std::optional<Mode> mode_;
  int64_t ignore_index_ = -100;
};

// Kullback-Leibler divergence, element by element: target * (log(target) - in), and with LogTarget
// exp(target) * (target - in). in holds log-probabilities. Floating point, contiguous, of one type
// and shape; NONE writes that shape.
class MUDNN_API KLDivLoss {
 public:
  enum class Mode { NONE, MEAN, SUM };

  Status SetReductionMode(Mode mode);
  Status SetLogTarget(bool log_target);

  Status Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& target,
             const MemoryMaintainer& maintainer) const;
  // Gradient with respect to in.
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& in,
                const Tensor& target) const;

 private:
  std::optional<Mode> mode_;
  bool log_target_ = false;
};

// Negative log likelihood of the softmax of in (N, C) for class indices target (N), INT64; weight
// (C) may be absent. MEAN divides by the sum of the weights of the targets counted. Chips before
// compute capability 3.0: NOT_SUPPORTED.
class MUDNN_API CrossEntropyLoss {
 public:
  enum class ReductionMode { NONE, MEAN, SUM };

  Status SetReductionMode(ReductionMode mode);
  Status SetIgnoreIndex(int64_t index);
  Status SetLabelSmoothing(double smoothing);  // in [0, 1]

  Status Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& target, const Tensor& weight,
             const MemoryMaintainer& maintainer) const;
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& in, const Tensor& grad_out,
                const Tensor& target, const Tensor& weight,
                const MemoryMaintainer& maintainer) const;

 private:
  std::optional<ReductionMode> mode_;
  int64_t ignore_index_ = -100;
  double label_smoothing_ = 0;
};

// Connectionist temporal classification. in (T, N, C) holds log-probabilities, FLOAT or DOUBLE;
// target INT64 or INT32, (N, S) or the targets one after the other; the lengths (N), INT64. out (N)
// is the negative log likelihood, alpha (N, T, 2 * MaxTargetLength + 1) is kept for RunBwd.
class MUDNN_API CTCLoss {
 public:
  Status SetBlank(int64_t blank);
  Status SetZeroInfinity(bool zero_infinity);
  Status SetMaxTargetLength(int64_t length);

  Status Run(Handle& h, Tensor& out, Tensor& alpha, const Tensor& in, const Tensor& target,
             const Tensor& input_lengths, const Tensor& target_lengths) const;
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& in,
                const Tensor& target, const Tensor& input_lengths, const Tensor& target_lengths,
                const Tensor& out, const Tensor& alpha, const MemoryMaintainer& maintainer) const;

 private:
  int64_t blank_ = 0;
  bool zero_infinity_ = false;
  int64_t max_target_length_ = -1;
};

}  // namespace musa::dnn
