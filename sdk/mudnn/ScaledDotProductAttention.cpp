#include "Internal.h"
#include "mudnn_transformer.h"

#include <ATen/TensorOperators.h>

#include <atomic>
#include <initializer_list>

#include "Attention.h"
#include "AttentionChecks.h"
#include "BatchAttention.h"
#include "Draw.h"
#include "Flash.h"

namespace musa::dnn {

using namespace internal;

namespace {

using Op = ScaledDotProductAttention;

void check_contiguous(std::initializer_list<const Tensor*> operands) {
  for (const Tensor* t : operands) require(contiguous(*t), "operands must be contiguous");
}

void check_weights(const Tensor& weights, const Tensor& q, const Tensor& k) {
  require(type(weights) == type(q) &&
              dims(weights).equals({dims(q)[0], dims(q)[1], dims(q)[2], dims(k)[2]}),
          "attn_weights is (N, H, L, S)");
}

// Where the operand stands for dropout; undefined where nothing is dropped.
at::Tensor kept_alias(const Call& c, bool drops, const Tensor& kept, const Tensor& q,
                      const Tensor& k) {
  if (!drops) return {};
  require(!absent(kept), "dropout needs dropout_mask");
  require(type(kept) == Type::BOOL && contiguous(kept) &&
              dims(kept).equals({dims(q)[0], dims(q)[1], dims(q)[2], dims(k)[2]}),
          "dropout_mask is BOOL, (N, H, L, S)");
  return c.alias(kept);
}

// Every dropping call has numbers of its own: the library keeps its own state.
void draw_next(const at::Tensor& kept, double p) {
  static std::atomic<uint64_t> calls{0};
  draw(kept, p, Word{calls.fetch_add(1)}, Word{});
}

}  // namespace

Status Op::SetComputeMode(ComputeMode mode) {
  if (mode != ComputeMode::SCALAR && mode != ComputeMode::TENSOR) return Status::INVALID_PARAMETER;
  compute_mode_ = mode;
  return Status::SUCCESS;
}

#define POSITIVE_SETTER(name, member)                \
  Status Op::name(int value) {                       \
    if (value < 1) return Status::INVALID_PARAMETER; \
    member = value;                                  \
    return Status::SUCCESS;                          \
  }
POSITIVE_SETTER(SetEmbedDim, embed_dim_)
POSITIVE_SETTER(SetHeadsNum, heads_)
POSITIVE_SETTER(SetBatchSize, batch_size_)
POSITIVE_SETTER(SetMaxSeqlenQ, max_seqlen_q_)
POSITIVE_SETTER(SetMaxSeqlenK, max_seqlen_k_)
#undef POSITIVE_SETTER

Status Op::SetMaskMode(bool is_padding_mask) {
  padding_mask_ = is_padding_mask;
  return Status::SUCCESS;
}

Status Op::SetCausal(bool causal) {
  causal_ = causal;
  return Status::SUCCESS;
}

Status Op::SetDropoutP(double p) {
  if (!(p >= 0 && p < 1)) return Status::INVALID_PARAMETER;
  dropout_p_ = p;
  return Status::SUCCESS;
}

Status Op::SetScale(double scale) {
  scale_ = scale;
  return Status::SUCCESS;
}

Status Op::SetTraining(bool training) {
  training_ = training;
  return Status::SUCCESS;
}

Status Op::RunMath(Handle& h, Tensor& out, Tensor& attn_weights, const Tensor& q, const Tensor& k,
                   const Tensor& v, const Tensor& mask_or_empty, Tensor& dropout_mask,
                   const MemoryMaintainer&) const {
  const Tensor &mask = given(mask_or_empty), &dropped = given(dropout_mask);
  return Call(h, Class::SDPA, "ScaledDotProductAttention::RunMath", "MATH")
      .out("out", out)
      .out("attn_weights", attn_weights)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .optional_in("mask", mask)
      .optional_out("dropout_mask", dropped)
      .run([&](Call& c) -> Work {
        const AttentionParameters p{*this};
        check_batch(p, out, q, k, v);
        check_contiguous({&out, &q, &k, &v, &attn_weights});
        check_weights(attn_weights, q, k);
        const at::Tensor kept = kept_alias(c, p.drops(), dropped, q, k);
        return [a = attention(c, p, q, k, v, kept), m = mask_alias(c, p, mask, q, k),
                o = c.alias(out), w = c.alias(attn_weights)] {
          if (a.kept.defined()) draw_next(a.kept, a.dropout_p);
          const Attention masked = with_mask(a, m, /*causal=*/false);
          const at::Tensor weights = std::get<0>(attention_weights(masked));
          o.copy_(attend(masked, weights));
          w.copy_(weights);
        };
      });
}

Status Op::RunMathBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v,
                      Tensor& grad_attn_weights, const Tensor& grad_out, const Tensor& q,
                      const Tensor& k, const Tensor& v, const Tensor& attn_weights,
                      const Tensor& dropout_mask, const MemoryMaintainer&) const {
  const Tensor& dropped = given(dropout_mask);
  return Call(h, Class::SDPA, "ScaledDotProductAttention::RunMathBwd", "MATH")
      .out("grad_q", grad_q)
      .out("grad_k", grad_k)
      .out("grad_v", grad_v)
      .out("grad_attn_weights", grad_attn_weights)
      .in("grad_out", grad_out)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .in("attn_weights", attn_weights)
      .optional_in("dropout_mask", dropped)
      .run([&](Call& c) -> Work {
        const AttentionParameters p{*this};
        check_batch(p, grad_out, q, k, v);
        check_like(grad_q, q);
        check_like(grad_k, k);
        check_like(grad_v, v);
        check_like(grad_attn_weights, attn_weights);
        check_weights(attn_weights, q, k);
        check_contiguous(
            {&grad_q, &grad_k, &grad_v, &grad_attn_weights, &grad_out, &q, &k, &v, &attn_weights});
        const at::Tensor kept = kept_alias(c, p.drops(), dropped, q, k);
        return [a = attention(c, p, q, k, v, kept), w = c.alias(attn_weights),
                go = c.alias(grad_out), gq = c.alias(grad_q), gk = c.alias(grad_k),
                gv = c.alias(grad_v), gw = c.alias(grad_attn_weights)] {
          const AttentionGradients grads = attention_backward(a, w, go);
          gq.copy_(grads.q);
          gk.copy_(grads.k);
          gv.copy_(grads.v);
          gw.copy_(grads.weights);
        };
      });
}

Status Op::RunFlash(Handle& h, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k,
                    const Tensor& v, const Tensor& mask_or_empty, Tensor& dropout_mask,
                    const MemoryMaintainer&) const {
  const Tensor &mask = given(mask_or_empty), &dropped = given(dropout_mask);
  return Call(h, Class::SDPA, "ScaledDotProductAttention::RunFlash", "FLASH")
      .out("out", out)
      .out("lse", lse)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .optional_in("mask", mask)
      .optional_out("dropout_mask", dropped)
      .run([&](Call& c) -> Work {
        const AttentionParameters p{*this};
        check_flash(p, out, q, k, v);
        check_lse(lse, q);
        const at::Tensor kept = kept_alias(c, p.drops(), dropped, q, k);
        const Flash f{attention(c, p, q, k, v, kept), mask_alias(c, p, mask, q, k), causal_};
        return [f, o = c.alias(out), l = c.alias(lse)] {
          if (f.attention.kept.defined()) draw_next(f.attention.kept, f.attention.dropout_p);
          flash_forward(f, o, l);
        };
      });
}

Status Op::RunFlashBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v,
                       const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& mask_or_empty, const Tensor& out, const Tensor& lse,
                       const Tensor& dropout_mask, const MemoryMaintainer&) const {
  const Tensor &mask = given(mask_or_empty), &dropped = given(dropout_mask);
  return Call(h, Class::SDPA, "ScaledDotProductAttention::RunFlashBwd", "FLASH")
      .out("grad_q", grad_q)
      .out("grad_k", grad_k)
      .out("grad_v", grad_v)
      .in("grad_out", grad_out)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .optional_in("mask", mask)
      .in("out", out)
      .in("lse", lse)
      .optional_in("dropout_mask", dropped)
      .run([&](Call& c) -> Work {
        const AttentionParameters p{*this};
        check_flash_backward(p, grad_q, grad_k, grad_v, grad_out, q, k, v, out, lse);
        const at::Tensor kept = kept_alias(c, p.drops(), dropped, q, k);
        const Flash f{attention(c, p, q, k, v, kept), mask_alias(c, p, mask, q, k), causal_};
        return [f, o = c.alias(out), go = c.alias(grad_out), l = c.alias(lse), gq = c.alias(grad_q),
                gk = c.alias(grad_k), gv = c.alias(grad_v)] {
          flash_backward(f, o, l, go, {.q = gq, .k = gk, .v = gv, .weights = {}, .bias = {}});
        };
      });
}

}  // namespace musa::dnn
