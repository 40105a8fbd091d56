// muDNN: what transformers are made of beside matrix products and normalization.
#pragma once

#include <cstdint>
#include <optional>

#include "mudnn_base.h"

namespace musa::dnn {

// softmax(scale * q @ k^T + mask) @ v for every sample and head. q is (N, H, L, E), k (N, G, S, E),
// v (N, G, S, F) with G dividing H, out (N, H, L, F); one type.
//
// mask may be absent, and so may dropout_mask unless elements are dropped; an operand of shape {0}
// counts as absent here. A mask is BOOL (true: takes part) or of q's type (added), and broadcasts
// to (N, H, L, S); with MaskMode true it is a padding mask (N, S).
//
// Where DropoutP is positive and Training set, dropout_mask (BOOL, N, H, L, S) receives what is
// kept.
class MUDNN_API ScaledDotProductAttention {
 public:
  using ComputeMode = ::musa::dnn::ComputeMode;

  Status SetComputeMode(ComputeMode mode);
  Status SetEmbedDim(int dim);     // H * E (or H * F): required
  Status SetHeadsNum(int heads);   // H: required
  Status SetBatchSize(int batch);  // of the variable-length variants: required there
  Status SetMaxSeqlenQ(int length);
  Status SetMaxSeqlenK(int length);
  Status SetMaskMode(bool is_padding_mask);
  // Of the flash variants: a query sees the keys up to its own position. RunFlash wants L == S
  // then; the variable-length variants align the ends of queries and keys.
  Status SetCausal(bool causal);
  Status SetDropoutP(double p);   // in [0, 1)
  Status SetScale(double scale);  // default 1 / sqrt(E)
  Status SetTraining(bool training);

  // Keeps the attention weights (N, H, L, S), before dropout. Operands are contiguous.
  Status RunMath(Handle& h, Tensor& out, Tensor& attn_weights, const Tensor& q, const Tensor& k,
                 const Tensor& v, const Tensor& mask, Tensor& dropout_mask,
                 const MemoryMaintainer& maintainer) const;
  Status RunMathBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v,
                    Tensor& grad_attn_weights, const Tensor& grad_out, const Tensor& q,
                    const Tensor& k, const Tensor& v, const Tensor& attn_weights,
                    const Tensor& dropout_mask, const MemoryMaintainer& maintainer) const;

  // Keeps the logarithm of the softmax's denominator, lse (FLOAT, N, H, L). HALF or BFLOAT16, the
  // last dimension dense.
  Status RunFlash(Handle& h, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k,
                  const Tensor& v, const Tensor& mask, Tensor& dropout_mask,
                  const MemoryMaintainer& maintainer) const;
  Status RunFlashBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v,
                     const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                     const Tensor& mask, const Tensor& out, const Tensor& lse,
                     const Tensor& dropout_mask, const MemoryMaintainer& maintainer) const;

  // Samples of different lengths one after the other: q (total, H, E), k (total, G, E), v
  // (total, G, F); sample i is rows cu_seqlens[i] to cu_seqlens[i + 1] (INT32, BatchSize + 1). lse
  // is (BatchSize, H, MaxSeqlenQ). No mask; DropoutP: NOT_SUPPORTED.
  Status RunFlashVarlen(Handle& h, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k,
                        const Tensor& v, const Tensor& mask, Tensor& dropout_mask,
                        const Tensor& cu_seqlens_q, const Tensor& cu_seqlens_k,
                        const MemoryMaintainer& maintainer) const;
  Status RunFlashVarlenBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v,
                           const Tensor& grad_out, const Tensor& q, const Tensor& k,
                           const Tensor& v, const Tensor& mask, const Tensor& out,
                           const Tensor& lse, const Tensor& dropout_mask,
                           const Tensor& cu_seqlens_q, const Tensor& cu_seqlens_k,
                           const MemoryMaintainer& maintainer) const;

 private:
  friend struct AttentionParameters;

  ComputeMode compute_mode_ = ComputeMode::SCALAR;
  int embed_dim_ = 0;
  int heads_ = 0;
  int batch_size_ = 0;
  int max_seqlen_q_ = 0;
  int max_seqlen_k_ = 0;
  bool padding_mask_ = false;
  bool causal_ = false;
  bool training_ = false;
  double dropout_p_ = 0;
  std::optional<double> scale_;
};

// Rotary position embedding: turns the elements of each head in pairs by the angles freqs (FLOAT or
// in's type, (sequence, E)). in is (sequence, batch, heads, E), with BatchFirst (batch, sequence,
// heads, E); E is even. RotaryInterleaved pairs neighbours, otherwise an element pairs with the one
// half a head away; MultiLatentAttention first takes the even elements to the first half, the odd
// ones to the second. HALF, BFLOAT16, FLOAT, the last dimension dense.
class MUDNN_API Rope {
 public:
  Status SetRotaryInterleaved(bool interleaved);
  Status SetBatchFirst(bool batch_first);
  Status SetMultiLatentAttention(bool multi_latent);

  Status Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& freqs) const;
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& freqs) const;

 private:
  bool interleaved_ = false;
  bool batch_first_ = false;
  bool multi_latent_ = false;
};

// out = silu(first half of in along the last dimension) * second half. HALF, BFLOAT16, FLOAT,
// contiguous.
class MUDNN_API SwiGlu {
 public:
  Status Run(Handle& h, Tensor& out, const Tensor& in) const;
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& in, const Tensor& grad_out) const;
};

}  // namespace musa::dnn
