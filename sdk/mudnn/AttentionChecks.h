// What ScaledDotProductAttention's variants ask of their operands.
#pragma once

#include <cmath>

#include "Internal.h"
#include "mudnn_transformer.h"

namespace musa::dnn {

// What the setters said.
struct AttentionParameters {
  const ScaledDotProductAttention& op;

  bool drops() const { return op.training_ && op.dropout_p_ > 0; }
  double scale(int64_t width) const {
    return op.scale_.value_or(1 / std::sqrt(static_cast<double>(width)));
  }
  bool causal() const { return op.causal_; }
  bool padding_mask() const { return op.padding_mask_; }
  double dropout_p() const { return drops() ? op.dropout_p_ : 0; }
  int64_t heads() const { return op.heads_; }
  int64_t embed_dim() const { return op.embed_dim_; }
  int64_t batch_size() const { return op.batch_size_; }
  int64_t max_seqlen_q() const { return op.max_seqlen_q_; }
  int64_t max_seqlen_k() const { return op.max_seqlen_k_; }
};

namespace internal {

// Callers say "no mask" with an empty tensor too.
inline const Tensor& given(const Tensor& t) {
  static const Tensor none;
  return !absent(t) && rank(t) == 1 && dims(t)[0] == 0 ? none : t;
}

inline bool dense_rows(const Tensor& t) { return rank(t) > 0 && strides(t)[rank(t) - 1] == 1; }

inline void check_types(const Tensor& out, const Tensor& q, const Tensor& k, const Tensor& v) {
  require(is_floating(type(q)) && type(q) != Type::DOUBLE, "type", Status::NOT_SUPPORTED);
  require(type(q) == type(k) && type(q) == type(v) && type(q) == type(out),
          "operands must have one type");
}

// The shapes of (N, H, L, E) or, with one dimension less, (total, H, E): dimension `h` is the
// heads.
inline void check_heads(const AttentionParameters& p, const Tensor& out, const Tensor& q,
                        const Tensor& k, const Tensor& v, int64_t h) {
  const int64_t last = rank(q) - 1;
  const int64_t heads = dims(q)[h], groups = dims(k)[h];
  require(p.heads() > 0 && p.embed_dim() > 0, "SetHeadsNum and SetEmbedDim come first");
  require(heads == p.heads(), "HeadsNum does not fit q");
  require(p.embed_dim() == heads * dims(q)[last] || p.embed_dim() == heads * dims(v)[last],
          "EmbedDim is HeadsNum times the width of a head");
  require(dims(v)[h] == groups && heads % groups == 0,
          "the heads of k and v must divide those of q");
  require(dims(q)[last] == dims(k)[last], "q and k have one width");
  require(dims(out)[last] == dims(v)[last] && dims(out)[h] == heads, "out must have v's width");
}

inline void check_like(const Tensor& a, const Tensor& b) {
  require(same_shape(a, b) && type(a) == type(b), "a gradient must be like its operand");
}

}  // namespace internal
}  // namespace musa::dnn
