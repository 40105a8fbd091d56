#include "Flash.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "FlashKernel.h"

namespace musa::dnn::internal {
namespace {

Attention composed(const Flash& f) {
  Attention a = with_mask(f.attention, f.mask, f.causal);
  if (f.seeded) {
    a.kept = at::empty({a.q.size(0), a.q.size(1), a.q.size(2), a.k.size(2)},
                       a.q.options().dtype(at::kBool));
    draw(a.kept, a.dropout_p, f.seed, f.offset);
  }
  return a;
}

}  // namespace

Attention with_mask(Attention a, const at::Tensor& mask, bool causal) {
  if (mask.defined()) a.bias = mask_bias(mask);
  if (causal) {
    const at::Tensor hidden = causal_bias(a.q.size(2), a.k.size(2), a.q.options());
    a.bias = a.bias.defined() ? a.bias + hidden : hidden;
  }
  return a;
}

void flash_forward(const Flash& f, const at::Tensor& out, const at::Tensor& lse) {
  if (target::has_flash_kernel(f)) return target::flash_kernel(f, out, lse);
  const Attention a = composed(f);
  const auto [weights, denominators] = attention_weights(a);
  out.copy_(attend(a, weights));
  lse.copy_(denominators);
}

void flash_backward(const Flash& f, const at::Tensor& out, const at::Tensor& lse,
                    const at::Tensor& grad_out, const AttentionGradients& grads) {
  if (target::has_flash_kernel(f)) {
    return target::flash_kernel_backward(f, out, lse, grad_out, grads);
  }
  const Attention a = composed(f);
  const AttentionGradients made = attention_backward(a, attention_weights_from(a, lse), grad_out);
  grads.q.copy_(made.q);
  grads.k.copy_(made.k);
  grads.v.copy_(made.v);
  if (grads.bias.defined()) grads.bias.copy_(made.bias);
}

}  // namespace musa::dnn::internal
