#include "Attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

namespace musa::dnn::internal {
namespace {

at::Tensor wide(const at::Tensor& t) { return t.to(at::kFloat); }

// Keys and values have a head for every group of query heads.
at::Tensor for_every_head(const at::Tensor& t, int64_t heads) {
  const at::Tensor w = wide(t);
  return t.size(1) == heads ? w : w.repeat_interleave(heads / t.size(1), 1);
}

at::Tensor sum_over_groups(const at::Tensor& grad, int64_t groups) {
  if (grad.size(1) == groups) return grad;
  return at::sum(
      grad.view({grad.size(0), groups, grad.size(1) / groups, grad.size(2), grad.size(3)}), {2});
}

at::Tensor scores(const Attention& a) {
  const at::Tensor s =
      at::matmul(wide(a.q), for_every_head(a.k, a.q.size(1)).transpose(-1, -2)) * a.scale;
  return a.bias.defined() ? s + a.bias : s;
}

at::Tensor drop(const Attention& a, const at::Tensor& weights) {
  return a.kept.defined() ? weights * a.kept * (1 / (1 - a.dropout_p)) : weights;
}

}  // namespace

at::Tensor mask_bias(const at::Tensor& mask) {
  if (mask.scalar_type() != at::kBool) return wide(mask);
  const at::Tensor none = at::zeros_like(mask, mask.options().dtype(at::kFloat));
  return at::where(mask, none, at::full_like(none, -std::numeric_limits<float>::infinity()));
}

at::Tensor causal_bias(int64_t queries, int64_t keys, const at::TensorOptions& options) {
  return mask_bias(at::ones({queries, keys}, options.dtype(at::kBool)).tril(keys - queries));
}

at::Tensor attention_weights_from(const Attention& a, const at::Tensor& lse) {
  const at::Tensor denominator = wide(lse).unsqueeze(-1);
  const at::Tensor weights = at::exp(scores(a) - denominator);
  return at::where(denominator.isneginf(), at::zeros_like(weights), weights);
}

std::tuple<at::Tensor, at::Tensor> attention_weights(const Attention& a) {
  const at::Tensor lse = at::logsumexp(scores(a), -1);
  return {attention_weights_from(a, lse), lse};
}

at::Tensor attend(const Attention& a, const at::Tensor& weights) {
  return at::matmul(drop(a, weights), for_every_head(a.v, a.q.size(1)));
}

AttentionGradients attention_backward(const Attention& a, const at::Tensor& weights,
                                      const at::Tensor& grad_out) {
  const int64_t heads = a.q.size(1), groups = a.k.size(1);
  const at::Tensor p = wide(weights), grad = wide(grad_out);
  const at::Tensor grad_v = at::matmul(drop(a, p).transpose(-1, -2), grad);
  const at::Tensor grad_p = drop(a, at::matmul(grad, for_every_head(a.v, heads).transpose(-1, -2)));
  // Softmax's gradient, then the scale of the scores.
  const at::Tensor grad_bias = p * (grad_p - at::sum(p * grad_p, {-1}, /*keepdim=*/true));
  const at::Tensor grad_s = grad_bias * a.scale;
  const at::Tensor grad_k = at::matmul(grad_s.transpose(-1, -2), wide(a.q));
  return {at::matmul(grad_s, for_every_head(a.k, heads)), sum_over_groups(grad_k, groups),
          sum_over_groups(grad_v, groups), grad_p, grad_bias};
}

}  // namespace musa::dnn::internal
