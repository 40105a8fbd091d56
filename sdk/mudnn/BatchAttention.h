// What ScaledDotProductAttention's variants for samples of one length share: what they ask of their
// operands, and the parts of the arithmetic.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "Attention.h"
#include "AttentionChecks.h"
#include "Internal.h"
#include "mudnn_transformer.h"

namespace musa::dnn::internal {

inline void check_batch(const AttentionParameters& p, const Tensor& out, const Tensor& q,
                        const Tensor& k, const Tensor& v) {
  require(rank(q) == 4 && rank(k) == 4 && rank(v) == 4 && rank(out) == 4, "operands have rank 4");
  check_types(out, q, k, v);
  check_heads(p, out, q, k, v, 1);
  require(dims(k)[0] == dims(q)[0] && dims(v)[0] == dims(q)[0] && dims(out)[0] == dims(q)[0],
          "operands must have one batch size");
  require(dims(v)[2] == dims(k)[2], "k and v have one length");
  require(dims(out)[2] == dims(q)[2], "out must have q's length");
}

inline void check_lse(const Tensor& lse, const Tensor& q) {
  require(type(lse) == Type::FLOAT && contiguous(lse) && dims(lse).equals(dims(q).slice(0, 3)),
          "lse is FLOAT, (N, H, L)");
}

// The mask as (N or 1, H or 1, L or 1, S); undefined where it is absent.
inline at::Tensor mask_alias(const Call& c, const AttentionParameters& p, const Tensor& mask,
                             const Tensor& q, const Tensor& k) {
  if (absent(mask)) return {};
  require(type(mask) == Type::BOOL || type(mask) == type(q), "a mask is BOOL or has q's type");
  require(contiguous(mask), "the mask must be contiguous");
  const int64_t n = dims(q)[0], l = dims(q)[2], s = dims(k)[2];
  if (p.padding_mask()) {
    require(dims(mask).equals({n, s}), "a padding mask is (N, S)");
    return c.alias(mask).unsqueeze(1).unsqueeze(1);
  }
  return c.alias_expanded(mask, {n, dims(q)[1], l, s});
}

inline Attention attention(const Call& c, const AttentionParameters& p, const Tensor& q,
                           const Tensor& k, const Tensor& v, const at::Tensor& kept) {
  return {.q = c.alias(q),
          .k = c.alias(k),
          .v = c.alias(v),
          .bias = {},
          .kept = kept,
          .scale = p.scale(dims(q)[rank(q) - 1]),
          .dropout_p = p.dropout_p()};
}

// What the flash variants ask.
inline void check_flash(const AttentionParameters& p, const Tensor& out, const Tensor& q,
                        const Tensor& k, const Tensor& v) {
  check_batch(p, out, q, k, v);
  for (const Tensor* t : {&q, &k, &v, &out}) {
    require(dense_rows(*t), "the last dimension must be dense");
  }
  require(!p.causal() || dims(q)[2] == dims(k)[2], "Causal with lengths that differ: give a mask",
          Status::NOT_SUPPORTED);
}

inline void check_flash_backward(const AttentionParameters& p, const Tensor& grad_q,
                                 const Tensor& grad_k, const Tensor& grad_v, const Tensor& grad_out,
                                 const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Tensor& out, const Tensor& lse) {
  check_flash(p, out, q, k, v);
  check_like(grad_q, q);
  check_like(grad_k, k);
  check_like(grad_v, v);
  check_like(grad_out, out);
  check_lse(lse, q);
}

}  // namespace musa::dnn::internal
