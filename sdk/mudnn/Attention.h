// The arithmetic of attention, in float: what ScaledDotProductAttention's variants share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

namespace musa::dnn::internal {

// One batch of equally long samples. q is (N, H, L, E), k (N, G, S, E), v (N, G, S, F).
struct Attention {
  at::Tensor q, k, v;
  at::Tensor bias;  // added to the scores, broadcasts to (N, H, L, S); undefined: none
  at::Tensor kept;  // BOOL (N, H, L, S): what dropout keeps; undefined: everything
  double scale;
  double dropout_p = 0;
};

// A mask as what is added to the scores: BOOL true is 0, false is minus infinity.
at::Tensor mask_bias(const at::Tensor& mask);

// What hides from query i the keys after its own position. With as many queries as keys that is key
// i; otherwise the last query sees the last key.
at::Tensor causal_bias(int64_t queries, int64_t keys, const at::TensorOptions& options);

// Attention weights (N, H, L, S) before dropout, and the logarithm of their denominators (N, H, L).
// A query that sees nothing has weights of 0 and minus infinity.
std::tuple<at::Tensor, at::Tensor> attention_weights(const Attention& a);
// The weights again, from the denominators.
at::Tensor attention_weights_from(const Attention& a, const at::Tensor& lse);

// (N, H, L, F).
at::Tensor attend(const Attention& a, const at::Tensor& weights);

struct AttentionGradients {
  at::Tensor q, k, v, weights;
  at::Tensor bias;  // (N, H, L, S), whatever the bias broadcasts from
};
AttentionGradients attention_backward(const Attention& a, const at::Tensor& weights,
                                      const at::Tensor& grad_out);

}  // namespace musa::dnn::internal
