#include <torch_musa/ops/_scaled_dot_product_fused_attention_overrideable_backward_native.h>
#include <torch_musa/ops/_scaled_dot_product_fused_attention_overrideable_native.h>

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/mudnn/FlashAttention.h"
#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

constexpr char kName[] = "_scaled_dot_product_fused_attention_overrideable";

// ---- what muDNN takes (docs/limits.md) -------------------------------------------------------

bool HasFlashType(ScalarType dtype) { return dtype == kHalf || dtype == kBFloat16; }

// Sizes may be symbols: torch.compile asks, too.
bool HasFlashWidth(const c10::SymInt& keys, const c10::SymInt& values) {
  if (keys < 1 || values < 1) return false;
  return (keys <= 128 && values <= 128) || (keys == 192 && values == 128) ||
         (keys == 160 && values == 160);
}

bool IsPlain(const Tensor& t) {
  // vmap has no rule for the operator, forward-mode differentiation no formula.
  return t.layout() == kStrided && !t.is_nested() && t.dim() == 4 &&
         !t.key_set().has(DispatchKey::FuncTorchBatched) && !t._fw_grad(/*level=*/0).defined();
}

bool TakesMask(const Tensor& mask, const Tensor& query) {
  return mask.layout() == kStrided && mask.dim() <= 4 &&
         (mask.scalar_type() == kBool || mask.scalar_type() == query.scalar_type()) &&
         !mask.key_set().has(DispatchKey::FuncTorchBatched) && !mask._fw_grad(0).defined();
}

bool TakesShapes(const Tensor& query, const Tensor& key, const Tensor& value, bool enable_gqa) {
  const auto q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  for (size_t d = 0; d < 3; ++d) {
    if (q[d] < 1 || k[d] < 1) return false;
  }
  const bool heads = enable_gqa ? q[1] % k[1] == 0 : q[1] == k[1];
  return heads && v[1] == k[1] && q[0] == k[0] && v[0] == k[0] && v[2] == k[2] && q[3] == k[3] &&
         HasFlashWidth(q[3], v[3]);
}

bool MudnnTakes(const Tensor& query, const Tensor& key, const Tensor& value,
                const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                bool enable_gqa) {
  if (!IsPlain(query) || !IsPlain(key) || !IsPlain(value)) return false;
  const ScalarType dtype = query.scalar_type();
  if (!HasFlashType(dtype) || key.scalar_type() != dtype || value.scalar_type() != dtype) {
    return false;
  }
  if (mask && mask->defined() && (is_causal || !TakesMask(*mask, query))) return false;
  const bool needs_seeds =
      dropout_p > 0 || (mask && mask->defined() && mask->requires_grad() && GradMode::is_enabled());
  if (needs_seeds && !kFlashIsSeeded) return false;
  return dropout_p >= 0 && dropout_p < 1 && TakesShapes(query, key, value, enable_gqa) &&
         getMUSAArch() >= 22;
}

int64_t ChooseBackend(const Tensor& query, const Tensor& key, const Tensor& value,
                      const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                      std::optional<double> /*scale*/, bool enable_gqa) {
  const Context& context = at::globalContext();
  // muDNN's is a flash attention: who asks for that by name means it.
  const bool fused = context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP();
  if (fused && MudnnTakes(query, key, value, mask, dropout_p, is_causal, enable_gqa)) {
    return static_cast<int64_t>(SDPBackend::overrideable);
  }
  // What "error" says: PyTorch raises that no backend is viable.
  return static_cast<int64_t>(context.userEnabledMathSDP() ? SDPBackend::math : SDPBackend::error);
}

// ---- operands --------------------------------------------------------------------------------

void CheckOperands(const Tensor& query, const Tensor& key, const Tensor& value,
                   const std::optional<Tensor>& mask, double dropout_p, bool is_causal) {
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, kName,
              ": query, key and value are (N, H, L, E), got ", query.sizes(), ", ", key.sizes(),
              " and ", value.sizes());
  TORCH_CHECK(key.size(0) == query.size(0) && value.size(0) == query.size(0) &&
                  value.size(1) == key.size(1) && key.size(1) > 0 &&
                  query.size(1) % key.size(1) == 0 && value.size(2) == key.size(2) &&
                  key.size(3) == query.size(3),
              kName, ": shapes ", query.sizes(), ", ", key.sizes(), " and ", value.sizes(),
              " do not fit together");
  const ScalarType dtype = query.scalar_type();
  CheckImplemented(HasFlashType(dtype), dtype, kName);
  TORCH_CHECK(key.scalar_type() == dtype && value.scalar_type() == dtype, kName,
              ": query, key and value must have one dtype, got ", dtype, ", ", key.scalar_type(),
              " and ", value.scalar_type());
  TORCH_CHECK(HasFlashWidth(query.size(3), value.size(3)), kName, ": heads of width ",
              query.size(3), " with values of ", value.size(3),
              " are beyond muDNN's flash attention: up to 128, 192 with 128, or 160 with 160");
  TORCH_CHECK_NOT_IMPLEMENTED(dropout_p == 0 || kFlashIsSeeded, kName,
                              ": this muDNN draws no dropout by PyTorch's seeds");
  TORCH_CHECK(dropout_p >= 0 && dropout_p < 1, kName, ": dropout_p is in [0, 1), got ", dropout_p);
  if (!mask || !mask->defined()) return;
  TORCH_CHECK(!is_causal, kName, ": attn_bias should not be set when is_causal=True");
  TORCH_CHECK(mask->scalar_type() == kBool || mask->scalar_type() == dtype, kName,
              ": attn_bias is bool or has query's dtype, got ", mask->scalar_type());
}

// muDNN reads rows of heads with any strides between them.
bool HasDenseRows(const Tensor& t) {
  if (t.size(3) != 1 && t.stride(3) != 1) return false;
  for (int64_t d = 0; d < 3; ++d) {
    if (t.size(d) > 1 && t.stride(d) == 0) return false;
  }
  return true;
}

Tensor DenseRows(const Tensor& t) {
  return HasDenseRows(t) ? t : t.clone(MemoryFormat::Contiguous);
}

muTensor DescribeRows(const Tensor& t) {
  std::array<int64_t, 4> strides{t.stride(0), t.stride(1), t.stride(2), 1};
  return CreateMUTensor(t.data_ptr(), t.scalar_type(), t.sizes(), strides);
}

// Memory for a result like `t`: `t` itself where its rows are dense.
Tensor RowsFor(const Tensor& t) { return HasDenseRows(t) ? t : at::empty(t.sizes(), t.options()); }

void Deliver(const Tensor& rows, const Tensor& out) {
  if (!rows.is_same(out)) out.copy_(rows);
}

// The output has query's order of dimensions in memory, so that what goes on with (N, L, H, F), as
// nn.MultiheadAttention does, finds it dense.
Tensor OutputLike(const Tensor& query, int64_t width) {
  if (query.size(3) == width) return at::empty_like(query);
  std::array<int64_t, 4> order{0, 1, 2, 3}, sizes{}, back{};
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return query.stride(a) > query.stride(b); });
  for (int64_t d = 0; d < 4; ++d) {
    sizes[d] = order[d] == 3 ? width : query.size(order[d]);
    back[order[d]] = d;
  }
  return at::empty(sizes, query.options()).permute(back);
}

// What muDNN adds to the scores or selects by: (N or 1, H or 1, L or 1, S), undefined for none.
Tensor MaskOperand(const std::optional<Tensor>& mask, const Tensor& query, const Tensor& key,
                   bool is_causal) {
  const int64_t queries = query.size(2), keys = key.size(2);
  // muDNN's causal mask wants as many queries as keys.
  if (is_causal && queries != keys) {
    return at::ones({queries, keys}, query.options().dtype(kBool)).tril();
  }
  if (!mask || !mask->defined()) return {};
  const std::array<int64_t, 4> scores{query.size(0), query.size(1), queries, keys};
  TORCH_CHECK(is_expandable_to(mask->sizes(), scores), kName, ": attn_bias of shape ",
              mask->sizes(), " does not broadcast to ", IntArrayRef(scores));
  DimVector sizes(mask->sizes());
  if (sizes.empty()) sizes.push_back(1);
  sizes.back() = keys;
  return mask->expand(sizes).contiguous();
}

FlashAttention Configure(const Tensor& query, bool is_causal, bool equal_lengths, double dropout_p,
                         std::optional<double> scale) {
  FlashAttention op;
  CHECK_MUDNN_STATUS(op.SetComputeMode(ComputeModeOf(query.scalar_type())), "SetComputeMode");
  CHECK_MUDNN_STATUS(op.SetHeadsNum(ToInt(query.size(1))), "SetHeadsNum");
  CHECK_MUDNN_STATUS(op.SetEmbedDim(ToInt(query.size(1) * query.size(3))), "SetEmbedDim");
  CHECK_MUDNN_STATUS(op.SetCausal(is_causal && equal_lengths), "SetCausal");
  CHECK_MUDNN_STATUS(op.SetTraining(dropout_p > 0), "SetTraining");
  CHECK_MUDNN_STATUS(op.SetDropoutP(dropout_p), "SetDropoutP");
  if (scale) CHECK_MUDNN_STATUS(op.SetScale(*scale), "SetScale");
  return op;
}

// ---- seeds -----------------------------------------------------------------------------------

// Seed and offset as the operator hands them to its gradient: on the CPU, where the host knows
// them, or on the device, where a graph's replay does. Without dropout nobody reads them.
struct Draws {
  Tensor seed, offset;
};

Tensor CopyOfWord(const uint64_t* word, Device device) {
  return at::for_blob(const_cast<uint64_t*>(word), {})
      .options(TensorOptions(kLong))
      .target_device(device)
      .make_tensor()
      .clone();
}

Draws Reserve(const Tensor& query, double dropout_p) {
  if (dropout_p == 0) {
    const TensorOptions options = query.options().dtype(kLong);
    return {at::empty({}, options), at::empty({}, options)};
  }
  auto* generator = at::get_generator_or_default<MUSAGeneratorImpl>(
      std::nullopt, detail::getDefaultMUSAGenerator(query.get_device()));
  PhiloxState state;
  {
    const std::lock_guard lock(generator->mutex_);
    state = generator->philox_musa_state(32 * query.size(0) * query.size(1));
  }
  if (state.is_captured()) {
    return {
        CopyOfWord(state.device_seed(), query.device()),
        CopyOfWord(state.device_offset(), query.device()).add_(static_cast<int64_t>(state.offset))};
  }
  return {at::scalar_tensor(static_cast<int64_t>(state.seed), TensorOptions(kLong)),
          at::scalar_tensor(static_cast<int64_t>(state.offset), TensorOptions(kLong))};
}

void SetDraws(FlashAttention& op, double dropout_p, const Draws& draws) {
  if (dropout_p == 0) return;
  if (draws.seed.is_cpu()) {
    CHECK_MUDNN_STATUS(op.SetSeed(static_cast<uint64_t>(draws.seed.item<int64_t>())), "SetSeed");
    CHECK_MUDNN_STATUS(op.SetOffset(static_cast<uint64_t>(draws.offset.item<int64_t>())),
                       "SetOffset");
    return;
  }
  const auto word = [](const Tensor& t) {
    return static_cast<const uint64_t*>(const_cast<const void*>(t.const_data_ptr()));
  };
  CHECK_MUDNN_STATUS(op.SetSeed(word(draws.seed)), "SetSeed");
  CHECK_MUDNN_STATUS(op.SetOffset(word(draws.offset), 0), "SetOffset");
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>
FusedAttention(const Tensor& query, const Tensor& key, const Tensor& value,
               const std::optional<Tensor>& attn_bias, double dropout_p, bool is_causal,
               bool /*return_debug_mask*/, std::optional<double> scale) {
  CheckOperands(query, key, value, attn_bias, dropout_p, is_causal);
  const c10::musa::MUSAGuard guard(query.device());
  const Tensor out = OutputLike(query, value.size(3));
  const Tensor lse =
      at::empty({query.size(0), query.size(1), query.size(2)}, query.options().dtype(kFloat));
  const Draws draws = Reserve(query, dropout_p);
  const auto results = [&] {
    return std::make_tuple(out, lse, Tensor(), Tensor(), c10::SymInt(query.size(2)),
                           c10::SymInt(key.size(2)), draws.seed, draws.offset, Tensor());
  };
  if (out.numel() == 0 || key.numel() == 0) {  // nothing to attend to
    out.zero_();
    lse.fill_(-std::numeric_limits<float>::infinity());
    return results();
  }

  const Tensor q = DenseRows(query), k = DenseRows(key), v = DenseRows(value);
  const Tensor mask = MaskOperand(attn_bias, query, key, is_causal), rows = RowsFor(out);
  FlashAttention op = Configure(query, is_causal, query.size(2) == key.size(2), dropout_p, scale);
  SetDraws(op, dropout_p, draws);
  muTensor mt_out = DescribeRows(rows), mt_lse = CreateMUTensor(lse);
  CHECK_MUDNN_STATUS(op.RunFlash(GetMudnnHandle(), mt_out, mt_lse, DescribeRows(q), DescribeRows(k),
                                 DescribeRows(v), CreateMUTensor(mask), InternalMemAlloc),
                     "attention");
  Deliver(rows, out);
  return results();
}

std::tuple<Tensor, Tensor, Tensor, Tensor> FusedAttentionBackward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& attn_bias, std::array<bool, 4> grad_input_mask, const Tensor& out,
    const Tensor& logsumexp, const Tensor& /*cum_seq_q*/, const Tensor& /*cum_seq_k*/,
    int64_t /*max_q*/, int64_t /*max_k*/, double dropout_p, bool is_causal,
    const Tensor& philox_seed, const Tensor& philox_offset, std::optional<double> scale) {
  if (!grad_out.defined()) return {};
  CheckOperands(query, key, value, attn_bias, dropout_p, is_causal);
  const c10::musa::MUSAGuard guard(query.device());
  const bool wants_bias = grad_input_mask[3] && attn_bias.defined();
  TORCH_CHECK_NOT_IMPLEMENTED(!wants_bias || kFlashIsSeeded, kName,
                              "_backward: this muDNN gives no gradient of attn_bias");
  TORCH_CHECK(!wants_bias || attn_bias.scalar_type() != kBool, kName,
              "_backward: a bool attn_bias has no gradient");
  if (out.numel() == 0 || key.numel() == 0) {
    return {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value),
            wants_bias ? at::zeros_like(attn_bias) : Tensor()};
  }

  const Tensor q = DenseRows(query), k = DenseRows(key), v = DenseRows(value);
  const Tensor o = DenseRows(out), go = DenseRows(grad_out), lse = logsumexp.contiguous();
  const Tensor mask = MaskOperand(attn_bias, query, key, is_causal);
  const Tensor grad_q = at::empty_like(query), grad_k = at::empty_like(key),
               grad_v = at::empty_like(value);
  const Tensor rows_q = RowsFor(grad_q), rows_k = RowsFor(grad_k), rows_v = RowsFor(grad_v);
  Tensor grad_mask;
  if (wants_bias) {
    grad_mask =
        at::empty({query.size(0), query.size(1), query.size(2), key.size(2)}, query.options());
  }

  FlashAttention op = Configure(query, is_causal, query.size(2) == key.size(2), dropout_p, scale);
  SetDraws(op, dropout_p, {philox_seed, philox_offset});
  muTensor mt_q = DescribeRows(rows_q), mt_k = DescribeRows(rows_k), mt_v = DescribeRows(rows_v);
  muTensor mt_mask = CreateMUTensor(grad_mask);
  CHECK_MUDNN_STATUS(
      op.RunFlashBwd(GetMudnnHandle(), mt_q, mt_k, mt_v, mt_mask, DescribeRows(go), DescribeRows(q),
                     DescribeRows(k), DescribeRows(v), CreateMUTensor(mask), DescribeRows(o),
                     CreateMUTensor(lse), InternalMemAlloc),
      "attention, gradient");
  Deliver(rows_q, grad_q);
  Deliver(rows_k, grad_k);
  Deliver(rows_v, grad_v);
  return {grad_q, grad_k, grad_v, wants_bias ? at::sum_to(grad_mask, attn_bias.sizes()) : Tensor()};
}

}  // namespace at::musa

namespace at::native {

REGISTER_MUSA_DISPATCH(_fused_sdp_choice_stub, &at::musa::ChooseBackend)

}  // namespace at::native
