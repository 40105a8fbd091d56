// muDNN's attention, rotary embedding, SwiGlu and RMSNorm against other formulas for the same
// thing; gradients against autograd.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <vector>

#include "blocking.h"
#include "device_tensor.h"
#include "mudnn_seeded_attention.h"

namespace {

using namespace musa::dnn;
using check::DeviceTensor;
using Attention = ScaledDotProductAttention;

constexpr double kTolerance = 1e-5;
constexpr double kHalfTolerance = 4e-3;

Handle& handle() {
  static Handle h(0);
  return h;
}

// Inputs of autograd's reference, in float whatever the type under test.
at::Tensor leaf(const at::Tensor& t) { return t.to(at::kFloat).detach().requires_grad_(); }

Attention attention(int64_t heads, int64_t width) {
  Attention op;
  op.SetHeadsNum(static_cast<int>(heads));
  op.SetEmbedDim(static_cast<int>(heads * width));
  return op;
}

struct Batch {
  explicit Batch(at::ScalarType type = at::kFloat, int64_t groups = 4, int64_t keys = 7)
      : q(at::randn({2, 4, 5, 8}).to(type)),
        k(at::randn({2, groups, keys, 8}).to(type)),
        v(at::randn({2, groups, keys, 6}).to(type)),
        grad(at::randn({2, 4, 5, 6}).to(type)) {}

  at::Tensor reference(const std::optional<at::Tensor>& mask, bool causal = false,
                       std::optional<double> scale = {}) {
    lq = leaf(q), lk = leaf(k), lv = leaf(v);
    const int64_t repeats = lq.size(1) / lk.size(1);
    at::Tensor out =
        at::scaled_dot_product_attention(lq, lk.repeat_interleave(repeats, 1),
                                         lv.repeat_interleave(repeats, 1), mask, 0, causal, scale);
    out.backward(grad.to(at::kFloat));
    return out.detach();
  }

  at::Tensor q, k, v, grad, lq, lk, lv;
};

// ---- attention -------------------------------------------------------------------------------

void check_math(const Batch& b, const at::Tensor& mask, bool padding, const at::Tensor& expected) {
  DeviceTensor q(b.q), k(b.k), v(b.v), grad(b.grad), out(at::zeros_like(b.grad));
  DeviceTensor weights(at::zeros({2, 4, 5, 7})), grad_w(at::zeros({2, 4, 5, 7}));
  DeviceTensor gq(at::zeros_like(b.q)), gk(at::zeros_like(b.k)), gv(at::zeros_like(b.v));
  Attention op = attention(4, 8);
  op.SetMaskMode(padding);
  Tensor none;
  if (mask.defined()) {
    DeviceTensor m(mask);
    CHECK_OK(op.RunMath(handle(), out, weights, q, k, v, m, none, nullptr));
  } else {
    CHECK_OK(op.RunMath(handle(), out, weights, q, k, v, none, none, nullptr));
  }
  CHECK_CLOSE(out.read(), expected, kTolerance);
  CHECK_CLOSE(weights.read().sum({-1}), at::ones({2, 4, 5}), kTolerance);
  CHECK_OK(op.RunMathBwd(handle(), gq, gk, gv, grad_w, grad, q, k, v, weights, none, nullptr));
  CHECK_CLOSE(gq.read(), b.lq.grad(), 1e-4);
  CHECK_CLOSE(gk.read(), b.lk.grad(), 1e-4);
  CHECK_CLOSE(gv.read(), b.lv.grad(), 1e-4);
}

TEST(attention_math) {
  Batch b;
  check_math(b, {}, false, b.reference({}));
}

TEST(attention_math_with_masks) {
  Batch b;
  const at::Tensor keep = at::rand({5, 7}).gt(0.4).logical_or(at::ones({5, 7}).triu(6).eq(1));
  at::Tensor some = keep.clone();
  some.select(1, 0).fill_(true);  // every query sees something
  check_math(b, some, false, b.reference(some));
  const at::Tensor added = at::randn({2, 1, 5, 7});
  check_math(b, added, false, b.reference(added));
  const at::Tensor padding = at::ones({2, 7}, at::kBool);
  padding.select(0, 1).slice(0, 4).fill_(false);
  check_math(b, padding, true, b.reference(padding.view({2, 1, 1, 7})));
}

TEST(attention_math_with_grouped_heads) {
  Batch b(at::kFloat, 2);
  check_math(b, {}, false, b.reference({}));
}

TEST(attention_math_refuses) {
  Batch b;
  DeviceTensor q(b.q), k(b.k), v(b.v), out(at::zeros_like(b.grad));
  DeviceTensor weights(at::zeros({2, 4, 5, 7})), wrong(at::zeros({2, 4, 5, 5}));
  Tensor none;
  const auto run = [&](const Attention& op, DeviceTensor& w) {
    return op.RunMath(handle(), out, w, q, k, v, none, none, nullptr);
  };
  CHECK_STATUS(run(Attention(), weights), INVALID_PARAMETER);
  CHECK_STATUS(run(attention(2, 8), weights), INVALID_PARAMETER);
  CHECK_STATUS(run(attention(4, 16), weights), INVALID_PARAMETER);
  CHECK_STATUS(run(attention(4, 8), wrong), INVALID_PARAMETER);
  Attention dropping = attention(4, 8);
  dropping.SetDropoutP(0.5);
  dropping.SetTraining(true);
  CHECK_STATUS(run(dropping, weights), INVALID_PARAMETER);  // no dropout_mask
  CHECK_OK(run(attention(4, 8), weights));
}

void check_flash(Batch& b, const at::Tensor& mask, bool causal, const at::Tensor& expected) {
  // As op code has it: out is a transposed view.
  const at::Tensor memory = at::zeros({2, 5, 4, 6}, b.q.options()).transpose(1, 2);
  DeviceTensor q(b.q), k(b.k), v(b.v), grad(b.grad), out(memory), lse(at::zeros({2, 4, 5}));
  DeviceTensor gq(at::zeros_like(b.q)), gk(at::zeros_like(b.k)), gv(at::zeros_like(b.v));
  DeviceTensor m(mask.defined() ? mask : at::zeros({1}));
  Tensor empty, none;  // how op code says "no mask"
  (void)empty.SetNdInfo({0});
  Attention op = attention(4, 8);
  op.SetCausal(causal);
  const Tensor& chosen = mask.defined() ? m.desc : empty;
  CHECK_OK(op.RunFlash(handle(), out, lse, q, k, v, chosen, empty, nullptr));
  CHECK_CLOSE(out.read(), expected, kHalfTolerance);
  CHECK_OK(op.RunFlashBwd(handle(), gq, gk, gv, grad, q, k, v, chosen, out, lse, none, nullptr));
  CHECK_CLOSE(gq.read(), b.lq.grad(), 1e-2);
  CHECK_CLOSE(gk.read(), b.lk.grad(), 1e-2);
  CHECK_CLOSE(gv.read(), b.lv.grad(), 1e-2);
}

TEST(attention_flash) {
  Batch b(at::kHalf);
  check_flash(b, {}, false, b.reference({}));
  const at::Tensor mask = at::ones({5, 7}, at::kBool).tril(2);
  check_flash(b, mask, false, b.reference(mask));
}

TEST(attention_flash_with_grouped_heads) {
  Batch b(at::kHalf, 2);
  check_flash(b, {}, false, b.reference({}));
}

TEST(attention_flash_causal) {
  Batch b(at::kHalf, 4, 5);
  check_flash(b, {}, true, b.reference({}, true));
  Batch longer(at::kHalf, 4, 7);
  DeviceTensor q(longer.q), k(longer.k), v(longer.v), out(at::zeros_like(longer.grad));
  DeviceTensor lse(at::zeros({2, 4, 5}));
  Attention op = attention(4, 8);
  op.SetCausal(true);
  Tensor none;
  CHECK_STATUS(op.RunFlash(handle(), out, lse, q, k, v, none, none, nullptr), NOT_SUPPORTED);
}

TEST(attention_flash_takes_a_scale) {
  Batch b(at::kHalf);
  DeviceTensor q(b.q), k(b.k), v(b.v), out(at::zeros_like(b.grad)), lse(at::zeros({2, 4, 5}));
  Attention op = attention(4, 8);
  op.SetScale(0.1);
  Tensor none;
  CHECK_OK(op.RunFlash(handle(), out, lse, q, k, v, none, none, nullptr));
  CHECK_CLOSE(out.read(), b.reference({}, false, 0.1), kHalfTolerance);
}

TEST(attention_of_a_query_that_sees_nothing_is_zero) {
  Batch b(at::kHalf);
  DeviceTensor q(b.q), k(b.k), v(b.v), out(at::ones(b.grad.sizes(), at::kHalf));
  DeviceTensor lse(at::zeros({2, 4, 5})), mask(at::zeros({5, 7}, at::kBool));
  Tensor none;
  CHECK_OK(attention(4, 8).RunFlash(handle(), out, lse, q, k, v, mask, none, nullptr));
  CHECK_CLOSE(out.read(), at::zeros(b.grad.sizes()), kTolerance);
  CHECK(lse.read().isneginf().all().item<bool>());
}

TEST(seeded_attention_drops_by_seed_and_offset_alike_in_both_directions) {
  // Equal weights and values that pick the keys: out shows what was kept.
  const at::Tensor q = at::zeros({1, 2, 32, 32}, at::kHalf);
  const at::Tensor picks = at::eye(32).to(at::kHalf).expand({1, 2, 32, 32}).contiguous();
  DeviceTensor dq(q), dv(picks), out(q), lse(at::zeros({1, 2, 32}));
  DeviceTensor gq(q), gk(q), gv(q), seed(at::full({1}, 7, at::kLong));
  DeviceTensor base(at::full({1}, 4, at::kLong));
  Tensor none;
  SeededAttention op;
  op.SetHeadsNum(2);
  op.SetEmbedDim(64);
  op.SetDropoutP(0.25);
  op.SetTraining(true);
  const auto run = [&] {
    CHECK_OK(op.RunFlash(handle(), out, lse, dq, dq, dv, none, nullptr));
    return out.read();
  };
  CHECK_OK(op.SetSeed(uint64_t{7}));
  CHECK_OK(op.SetOffset(uint64_t{8}));
  const at::Tensor first = run();
  CHECK(at::equal(first, run()));
  const double share = first.ne(0).to(at::kDouble).mean().item<double>();
  CHECK(share > 0.7 && share < 0.8);
  // The gradient for values is the weights' transpose times the cotangent.
  CHECK_OK(op.RunFlashBwd(handle(), gq, gk, gv, none, dv, dq, dq, dv, none, out, lse, nullptr));
  CHECK(at::equal(gv.read().transpose(-1, -2).ne(0), first.ne(0)));
  // The same numbers from device memory; other ones.
  CHECK_OK(op.SetSeed(static_cast<const uint64_t*>(seed.address())));
  CHECK_OK(op.SetOffset(static_cast<const uint64_t*>(base.address()), 4));
  CHECK(at::equal(first, run()));
  CHECK_OK(op.SetOffset(uint64_t{12}));
  CHECK(!at::equal(first, run()));
  CHECK_STATUS(op.SetOffset(uint64_t{3}), INVALID_PARAMETER);
  CHECK_STATUS(op.SetSeed(nullptr), INVALID_PARAMETER);
  CHECK_STATUS(op.SetOffset(nullptr, 0), INVALID_PARAMETER);
}

TEST(seeded_attention_has_the_gradient_of_a_mask) {
  Batch b(at::kHalf);
  const at::Tensor mask = at::randn({1, 1, 5, 7}).to(at::kHalf), leaf_mask = leaf(mask);
  b.reference(leaf_mask);
  DeviceTensor q(b.q), k(b.k), v(b.v), grad(b.grad), out(at::zeros_like(b.grad)), m(mask);
  DeviceTensor lse(at::zeros({2, 4, 5})), gm(at::zeros({2, 4, 5, 7}, at::kHalf));
  DeviceTensor gq(at::zeros_like(b.q)), gk(at::zeros_like(b.k)), gv(at::zeros_like(b.v));
  DeviceTensor seen(at::ones({5, 7}, at::kBool));
  Tensor none;
  SeededAttention op;
  op.SetHeadsNum(4);
  op.SetEmbedDim(32);
  CHECK_OK(op.RunFlash(handle(), out, lse, q, k, v, m, nullptr));
  CHECK_OK(op.RunFlashBwd(handle(), gq, gk, gv, gm, grad, q, k, v, m, out, lse, nullptr));
  CHECK_CLOSE(gm.read().to(at::kFloat).sum({0, 1}, true), leaf_mask.grad(), 1e-2);
  CHECK_CLOSE(gq.read(), b.lq.grad(), 1e-2);
  const auto of = [&](const Tensor& of_mask) {
    return op.RunFlashBwd(handle(), gq, gk, gv, gm, grad, q, k, v, of_mask, out, lse, nullptr);
  };
  CHECK_STATUS(of(none), INVALID_PARAMETER);
  CHECK_STATUS(of(seen), INVALID_PARAMETER);
}

TEST(attention_drops_what_its_mask_says) {
  const at::Tensor q = at::randn({1, 2, 32, 8}), v = at::randn({1, 2, 32, 8});
  DeviceTensor dq(q), dv(v), out(at::zeros_like(q)), weights(at::zeros({1, 2, 32, 32}));
  DeviceTensor kept(at::zeros({1, 2, 32, 32}, at::kBool));
  Attention op = attention(2, 8);
  op.SetDropoutP(0.25);
  Tensor none;
  // Not in training: nothing is dropped.
  CHECK_OK(op.RunMath(handle(), out, weights, dq, dq, dv, none, none, nullptr));
  const at::Tensor p = at::softmax(at::matmul(q, q.transpose(-1, -2)) / std::sqrt(8.0), -1);
  CHECK_CLOSE(out.read(), at::matmul(p, v), kTolerance);
  op.SetTraining(true);
  CHECK_OK(op.RunMath(handle(), out, weights, dq, dq, dv, none, kept, nullptr));
  const at::Tensor first = kept.read();
  const double share = first.to(at::kDouble).mean().item<double>();
  CHECK(share > 0.7 && share < 0.8);
  CHECK_CLOSE(out.read(), at::matmul(p * first / 0.75, v), kTolerance);
  CHECK_OK(op.RunMath(handle(), out, weights, dq, dq, dv, none, kept, nullptr));
  CHECK(!kept.read().equal(first));
}

TEST(attention_of_samples_of_different_lengths) {
  const std::vector<int> lengths_q = {3, 5}, lengths_k = {4, 6};
  const at::Tensor q = at::randn({8, 2, 8}).to(at::kHalf), k = at::randn({10, 1, 8}).to(at::kHalf);
  const at::Tensor v = at::randn({10, 1, 8}).to(at::kHalf), g = at::randn({8, 2, 8}).to(at::kHalf);
  for (bool causal : {false, true}) {
    DeviceTensor dq(q), dk(k), dv(v), grad(g), out(at::zeros_like(q)), lse(at::zeros({2, 2, 5}));
    DeviceTensor gq(at::zeros_like(q)), gk(at::zeros_like(k)), gv(at::zeros_like(v));
    DeviceTensor starts_q(at::tensor({0, 3, 8}, at::kInt)),
        starts_k(at::tensor({0, 4, 10}, at::kInt));
    Attention op = attention(2, 8);
    op.SetBatchSize(2);
    op.SetMaxSeqlenQ(5);
    op.SetMaxSeqlenK(6);
    op.SetCausal(causal);
    Tensor none;
    CHECK_OK(
        op.RunFlashVarlen(handle(), out, lse, dq, dk, dv, none, none, starts_q, starts_k, nullptr));
    CHECK_OK(op.RunFlashVarlenBwd(handle(), gq, gk, gv, grad, dq, dk, dv, none, out, lse, none,
                                  starts_q, starts_k, nullptr));
    const at::Tensor lq = leaf(q), lk = leaf(k), lv = leaf(v);
    std::vector<at::Tensor> outs;
    for (int i = 0, a = 0, b = 0; i < 2; a += lengths_q[i], b += lengths_k[i], ++i) {
      const auto heads = [](const at::Tensor& t) { return t.transpose(0, 1).unsqueeze(0); };
      const at::Tensor mask =
          at::ones({lengths_q[i], lengths_k[i]}, at::kBool).tril(lengths_k[i] - lengths_q[i]);
      outs.push_back(at::scaled_dot_product_attention(
                         heads(lq.narrow(0, a, lengths_q[i])),
                         heads(lk.narrow(0, b, lengths_k[i])).repeat_interleave(2, 1),
                         heads(lv.narrow(0, b, lengths_k[i])).repeat_interleave(2, 1),
                         causal ? std::optional<at::Tensor>(mask) : std::nullopt)
                         .squeeze(0)
                         .transpose(0, 1));
    }
    const at::Tensor expected = at::cat(outs);
    expected.backward(g.to(at::kFloat));
    CHECK_CLOSE(out.read(), expected.detach(), kHalfTolerance);
    CHECK_CLOSE(gq.read(), lq.grad(), 1e-2);
    CHECK_CLOSE(gk.read(), lk.grad(), 1e-2);
    CHECK_CLOSE(gv.read(), lv.grad(), 1e-2);
  }
}

TEST_WITH_ENV(attention_of_samples_checks_where_they_begin, BLOCKING) {
  const at::Tensor x = at::randn({8, 2, 8}).to(at::kHalf);
  DeviceTensor q(x), out(at::zeros_like(x)), lse(at::zeros({2, 2, 5}));
  Attention op = attention(2, 8);
  Tensor none;
  const auto run = [&](std::vector<int> starts) {
    DeviceTensor s(at::tensor(starts, at::kInt));
    return op.RunFlashVarlen(handle(), out, lse, q, q, q, none, none, s, s, nullptr);
  };
  CHECK_STATUS(run({0, 3, 8}), INVALID_PARAMETER);  // no BatchSize, no MaxSeqlen
  op.SetBatchSize(2);
  op.SetMaxSeqlenQ(5);
  op.SetMaxSeqlenK(5);
  CHECK_OK(run({0, 3, 8}));
  CHECK_STATUS(run({0, 8}), INVALID_PARAMETER);
  CHECK_STATUS(run({0, 5, 3}), EXECUTION_FAILED);
  CHECK_STATUS(run({0, 1, 8}), EXECUTION_FAILED);  // longer than MaxSeqlen
  CHECK_STATUS(run({0, -3, 8}), EXECUTION_FAILED);
  CHECK_OK(run({0, 3, 8}));
}

// ---- rotary embedding ------------------------------------------------------------------------

// Pair by pair, in double.
at::Tensor rotate(const at::Tensor& in, const at::Tensor& angles, bool interleaved) {
  const int64_t width = in.size(3);
  at::Tensor out = at::empty(in.sizes(), at::kDouble);
  const auto x = in.accessor<float, 4>();
  const auto f = angles.accessor<float, 2>();
  auto y = out.accessor<double, 4>();
  for (int64_t s = 0; s < in.size(0); ++s) {
    for (int64_t b = 0; b < in.size(1); ++b) {
      for (int64_t h = 0; h < in.size(2); ++h) {
        for (int64_t i = 0; i < width / 2; ++i) {
          const int64_t p = interleaved ? 2 * i : i, r = interleaved ? p + 1 : i + width / 2;
          y[s][b][h][p] = x[s][b][h][p] * std::cos(f[s][p]) - x[s][b][h][r] * std::sin(f[s][p]);
          y[s][b][h][r] = x[s][b][h][r] * std::cos(f[s][r]) + x[s][b][h][p] * std::sin(f[s][r]);
        }
      }
    }
  }
  return out;
}

TEST(rope) {
  const at::Tensor x = at::randn({5, 2, 3, 8}), f = at::randn({5, 8});
  for (bool interleaved : {false, true}) {
    DeviceTensor in(x), angles(f), out(at::zeros_like(x));
    Rope op;
    op.SetRotaryInterleaved(interleaved);
    CHECK_OK(op.Run(handle(), out, in, angles));
    CHECK_CLOSE(out.read(), rotate(x, f, interleaved), kTolerance);
  }
}

TEST(rope_with_the_batch_first) {
  const at::Tensor x = at::randn({5, 2, 3, 8}), f = at::randn({5, 8});
  const at::Tensor first = x.transpose(0, 1).contiguous();
  DeviceTensor in(first), angles(f), out(at::zeros_like(first));
  Rope op;
  op.SetBatchFirst(true);
  CHECK_OK(op.Run(handle(), out, in, angles));
  CHECK_CLOSE(out.read().transpose(0, 1), rotate(x, f, false), kTolerance);
}

TEST(rope_of_multi_latent_attention_takes_even_elements_first) {
  const at::Tensor x = at::randn({5, 2, 3, 8}), f = at::randn({5, 8});
  const at::Tensor sorted = at::cat({x.slice(3, 0, 8, 2), x.slice(3, 1, 8, 2)}, 3);
  DeviceTensor in(x), angles(f), out(at::zeros_like(x));
  Rope op;
  op.SetMultiLatentAttention(true);
  CHECK_OK(op.Run(handle(), out, in, angles));
  CHECK_CLOSE(out.read(), rotate(sorted, f, false), kTolerance);
}

// The map is linear: its gradient is its transpose, <R x, g> = <x, R^T g>.
TEST(rope_backward_is_the_transposed_map) {
  const at::Tensor x = at::randn({5, 2, 3, 8}), g = at::randn({5, 2, 3, 8}), f = at::randn({5, 8});
  for (bool interleaved : {false, true}) {
    for (bool multi_latent : {false, true}) {
      DeviceTensor in(x), grad(g), angles(f), out(at::zeros_like(x)), grad_in(at::zeros_like(x));
      Rope op;
      op.SetRotaryInterleaved(interleaved);
      op.SetMultiLatentAttention(multi_latent);
      CHECK_OK(op.Run(handle(), out, in, angles));
      CHECK_OK(op.RunBwd(handle(), grad_in, grad, angles));
      CHECK_CLOSE((out.read() * g).sum(), (x * grad_in.read()).sum(), 1e-4);
    }
  }
}

TEST(rope_refuses) {
  DeviceTensor in(at::randn({5, 2, 3, 8})), out(at::zeros({5, 2, 3, 8}));
  DeviceTensor shorter(at::randn({4, 8})), narrow(at::randn({5, 4}));
  DeviceTensor wide(at::randn({5, 2, 3, 8}).to(at::kDouble)), angles(at::randn({5, 8}));
  CHECK_STATUS(Rope().Run(handle(), out, in, shorter), INVALID_PARAMETER);
  CHECK_STATUS(Rope().Run(handle(), out, in, narrow), INVALID_PARAMETER);
  CHECK_STATUS(Rope().Run(handle(), wide, wide, angles), NOT_SUPPORTED);
}

// ---- SwiGlu, RMSNorm -------------------------------------------------------------------------

TEST(swiglu_and_its_gradient) {
  const at::Tensor x = at::randn({3, 4, 10}), g = at::randn({3, 4, 5});
  const at::Tensor l = leaf(x);
  const at::Tensor y = at::silu(l.narrow(2, 0, 5)) * l.narrow(2, 5, 5);
  y.backward(g);
  DeviceTensor in(x), grad(g), out(at::zeros_like(g)), grad_in(at::zeros_like(x));
  CHECK_OK(SwiGlu().Run(handle(), out, in));
  CHECK_OK(SwiGlu().RunBwd(handle(), grad_in, in, grad));
  CHECK_CLOSE(out.read(), y.detach(), kTolerance);
  CHECK_CLOSE(grad_in.read(), l.grad(), kTolerance);
  CHECK_OK(SwiGlu().RunBwd(handle(), in, in, grad));  // in place
  CHECK_CLOSE(in.read(), l.grad(), kTolerance);
  CHECK_STATUS(SwiGlu().Run(handle(), in, in), INVALID_PARAMETER);
}

void check_rms_norm(at::ScalarType type, bool with_gamma, int axis, double tolerance) {
  const at::Tensor x = at::randn({3, 4, 6}).to(type), g = at::randn({3, 4, 6}).to(type);
  const at::Tensor w = at::randn({6}).to(type);
  const at::Tensor lx = leaf(x), lw = leaf(w);
  const at::Tensor y =
      at::rms_norm(lx, {6}, with_gamma ? std::optional<at::Tensor>(lw) : std::nullopt, 1e-4);
  y.backward(g.to(at::kFloat));
  DeviceTensor in(x), gamma(w), grad(g), out(at::zeros_like(x)), dx(at::zeros_like(x));
  DeviceTensor dgamma(at::zeros_like(w)), inv_var(at::zeros({3, 4}));
  Tensor none;
  RMSNorm op;
  op.SetAxis(1, &axis);
  op.SetEpsilon(1e-4);
  const Tensor& chosen = with_gamma ? gamma.desc : none;
  CHECK_OK(op.Run(handle(), out, inv_var, in, chosen));
  CHECK_OK(
      op.RunBwd(handle(), dx, with_gamma ? dgamma.desc : none, grad, in, inv_var, chosen, nullptr));
  CHECK_CLOSE(out.read(), y.detach(), tolerance);
  CHECK_CLOSE(inv_var.read(), (x.to(at::kFloat).square().mean({-1}) + 1e-4).rsqrt(), tolerance);
  CHECK_CLOSE(dx.read(), lx.grad(), tolerance);
  if (with_gamma) CHECK_CLOSE(dgamma.read(), lw.grad(), tolerance);
}

TEST(rms_norm) {
  check_rms_norm(at::kFloat, true, 2, 1e-5);
  check_rms_norm(at::kFloat, false, -1, 1e-5);
  check_rms_norm(at::kHalf, true, -1, 1e-2);
}

TEST(rms_norm_refuses) {
  DeviceTensor in(at::randn({3, 6})), out(at::zeros({3, 6})), inv_var(at::zeros({3}));
  Tensor none;
  RMSNorm op;
  CHECK_STATUS(op.Run(handle(), out, inv_var, in, none), INVALID_PARAMETER);  // no axis
  const int first = 0;
  op.SetAxis(1, &first);
  CHECK_STATUS(op.Run(handle(), out, inv_var, in, none), INVALID_PARAMETER);  // not trailing
  const int beyond = 5;
  op.SetAxis(1, &beyond);
  CHECK_STATUS(op.Run(handle(), out, inv_var, in, none), INVALID_PARAMETER);
}

}  // namespace
