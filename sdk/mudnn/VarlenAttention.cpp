// The variable-length variants of ScaledDotProductAttention: samples one after the other, each of
// its own length.
#include "Internal.h"
#include "mudnn_transformer.h"

#include <limits>
#include <vector>

#include "Attention.h"
#include "AttentionChecks.h"

namespace musa::dnn {

using namespace internal;

namespace {

using Op = ScaledDotProductAttention;

struct Varlen {
  at::Tensor q, k, v;  // (total, heads or groups, width)
  at::Tensor starts_q, starts_k;
  int64_t max_q, max_k;
  double scale;
  bool causal;
};

// One sample's rows, as a batch of one: (1, heads, length, width).
at::Tensor sample(const at::Tensor& packed, int64_t begin, int64_t end) {
  return packed.narrow(0, begin, end - begin).transpose(0, 1).unsqueeze(0);
}

// Where the samples begin and end. It is read when the work's turn comes, so what is wrong with it
// is a failed execution.
std::vector<int64_t> read(const at::Tensor& starts, int64_t total, int64_t longest) {
  const at::Tensor host = starts.cpu();
  const int32_t* data = host.const_data_ptr<int32_t>();
  std::vector<int64_t> result(data, data + host.numel());
  const auto check = [](bool ok, const char* what) { require(ok, what, Status::EXECUTION_FAILED); };
  check(result.front() == 0 && result.back() == total,
        "cu_seqlens goes from 0 to the number of rows");
  for (size_t i = 1; i < result.size(); ++i) {
    check(result[i] >= result[i - 1], "cu_seqlens must not decrease");
    check(result[i] - result[i - 1] <= longest, "a sample is longer than MaxSeqlen");
  }
  return result;
}

// Calls body(i, attention of sample i, first and last row of its queries, of its keys).
template <class Body>
void for_every_sample(const Varlen& s, Body body) {
  const auto q = read(s.starts_q, s.q.size(0), s.max_q);
  const auto k = read(s.starts_k, s.k.size(0), s.max_k);
  for (size_t i = 0; i + 1 < q.size(); ++i) {
    if (q[i] == q[i + 1]) continue;
    Attention a{.q = sample(s.q, q[i], q[i + 1]),
                .k = sample(s.k, k[i], k[i + 1]),
                .v = sample(s.v, k[i], k[i + 1]),
                .bias = {},
                .kept = {},
                .scale = s.scale};
    if (s.causal) a.bias = causal_bias(a.q.size(2), a.k.size(2), a.q.options());
    body(static_cast<int64_t>(i), a, q[i], q[i + 1], k[i], k[i + 1]);
  }
}

// Whatever the gradient is of has the same operands. `out` is out or its gradient.
Varlen prepare(const Call& c, const Op& op, const Tensor& out, const Tensor& lse, const Tensor& q,
               const Tensor& k, const Tensor& v, const Tensor& mask, const Tensor& starts_q,
               const Tensor& starts_k) {
  const AttentionParameters p{op};
  require(absent(mask), "samples of different lengths take no mask", Status::NOT_SUPPORTED);
  require(!p.drops(), "samples of different lengths take no dropout", Status::NOT_SUPPORTED);
  require(rank(q) == 3 && rank(k) == 3 && rank(v) == 3 && rank(out) == 3, "operands have rank 3");
  check_types(out, q, k, v);
  check_heads(p, out, q, k, v, 1);
  for (const Tensor* t : {&q, &k, &v, &out}) {
    require(dense_rows(*t), "the last dimension must be dense");
  }
  require(dims(k)[0] == dims(v)[0] && dims(out)[0] == dims(q)[0], "k and v, q and out go together");
  require(p.batch_size() > 0 && p.max_seqlen_q() > 0 && p.max_seqlen_k() > 0,
          "SetBatchSize, SetMaxSeqlenQ and SetMaxSeqlenK come first");
  for (const Tensor* t : {&starts_q, &starts_k}) {
    require(type(*t) == Type::INT32 && contiguous(*t) && dims(*t).equals({p.batch_size() + 1}),
            "cu_seqlens is INT32, (BatchSize + 1)");
  }
  require(type(lse) == Type::FLOAT && contiguous(lse) &&
              dims(lse).equals({p.batch_size(), p.heads(), p.max_seqlen_q()}),
          "lse is FLOAT, (BatchSize, H, MaxSeqlenQ)");
  return {.q = c.alias(q),
          .k = c.alias(k),
          .v = c.alias(v),
          .starts_q = c.alias(starts_q),
          .starts_k = c.alias(starts_k),
          .max_q = p.max_seqlen_q(),
          .max_k = p.max_seqlen_k(),
          .scale = p.scale(dims(q)[2]),
          .causal = p.causal()};
}

}  // namespace

Status Op::RunFlashVarlen(Handle& h, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k,
                          const Tensor& v, const Tensor& mask, Tensor& dropout_mask,
                          const Tensor& cu_seqlens_q, const Tensor& cu_seqlens_k,
                          const MemoryMaintainer&) const {
  return Call(h, Class::SDPA, "ScaledDotProductAttention::RunFlashVarlen", "FLASH")
      .out("out", out)
      .out("lse", lse)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .in("cu_seqlens_q", cu_seqlens_q)
      .in("cu_seqlens_k", cu_seqlens_k)
      .run([&](Call& c) -> Work {
        const Varlen s =
            prepare(c, *this, out, lse, q, k, v, given(mask), cu_seqlens_q, cu_seqlens_k);
        return [s, o = c.alias(out), l = c.alias(lse)] {
          l.fill_(-std::numeric_limits<float>::infinity());
          for_every_sample(
              s, [&](int64_t i, const Attention& a, int64_t first, int64_t last, int64_t, int64_t) {
                const auto [weights, denominators] = attention_weights(a);
                sample(o, first, last).copy_(attend(a, weights));
                l.select(0, i).narrow(1, 0, last - first).copy_(denominators[0]);
              });
        };
      });
}

Status Op::RunFlashVarlenBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v,
                             const Tensor& grad_out, const Tensor& q, const Tensor& k,
                             const Tensor& v, const Tensor& mask, const Tensor& out,
                             const Tensor& lse, const Tensor& dropout_mask,
                             const Tensor& cu_seqlens_q, const Tensor& cu_seqlens_k,
                             const MemoryMaintainer&) const {
  return Call(h, Class::SDPA, "ScaledDotProductAttention::RunFlashVarlenBwd", "FLASH")
      .out("grad_q", grad_q)
      .out("grad_k", grad_k)
      .out("grad_v", grad_v)
      .in("grad_out", grad_out)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .in("out", out)
      .in("lse", lse)
      .in("cu_seqlens_q", cu_seqlens_q)
      .in("cu_seqlens_k", cu_seqlens_k)
      .run([&](Call& c) -> Work {
        check_like(grad_q, q);
        check_like(grad_k, k);
        check_like(grad_v, v);
        check_like(grad_out, out);
        const Varlen s =
            prepare(c, *this, out, lse, q, k, v, given(mask), cu_seqlens_q, cu_seqlens_k);
        return [s, go = c.alias(grad_out), l = c.alias(lse), gq = c.alias(grad_q),
                gk = c.alias(grad_k), gv = c.alias(grad_v)] {
          // A sample without queries gives its keys no gradient.
          gk.zero_();
          gv.zero_();
          for_every_sample(s, [&](int64_t i, const Attention& a, int64_t first_q, int64_t last_q,
                                  int64_t first_k, int64_t last_k) {
            const at::Tensor denominators = l.select(0, i).narrow(1, 0, last_q - first_q);
            const AttentionGradients grads =
                attention_backward(a, attention_weights_from(a, denominators.unsqueeze(0)),
                                   sample(go, first_q, last_q));
            sample(gq, first_q, last_q).copy_(grads.q);
            sample(gk, first_k, last_k).copy_(grads.k);
            sample(gv, first_k, last_k).copy_(grads.v);
          });
        };
      });
}

}  // namespace musa::dnn
