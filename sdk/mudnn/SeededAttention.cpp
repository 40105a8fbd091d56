#include "mudnn_seeded_attention.h"

#include <ATen/core/Tensor.h>

#include "BatchAttention.h"
#include "Flash.h"
#include "Internal.h"
#include "Words.h"

namespace musa::dnn {

using namespace internal;

using Op = SeededAttention;

namespace {

// What a mask is added to, in the mask's type.
void check_grad_mask(const Tensor& grad_mask, const Tensor& mask, const Tensor& q,
                     const Tensor& k) {
  if (absent(grad_mask)) return;
  require(!absent(mask) && type(mask) == type(q), "a mask of q's type has a gradient, others not");
  require(type(grad_mask) == type(q) && contiguous(grad_mask) &&
              dims(grad_mask).equals({dims(q)[0], dims(q)[1], dims(q)[2], dims(k)[2]}),
          "grad_mask is (N, H, L, S) in q's type");
}

Flash flash(const Call& c, const AttentionParameters& p, const Tensor& q, const Tensor& k,
            const Tensor& v, const Tensor& mask, const Word& seed, const Word& offset) {
  return {.attention = attention(c, p, q, k, v, {}),
          .mask = mask_alias(c, p, mask, q, k),
          .causal = p.causal(),
          .seeded = p.drops(),
          .seed = seed,
          .offset = offset};
}

}  // namespace

Status Op::SetSeed(uint64_t seed) {
  seed_ = seed;
  device_seed_ = nullptr;
  return Status::SUCCESS;
}

Status Op::SetSeed(const uint64_t* device_seed) {
  if (device_seed == nullptr) return Status::INVALID_PARAMETER;
  device_seed_ = device_seed;
  return Status::SUCCESS;
}

Status Op::SetOffset(uint64_t offset) {
  if (offset % kWordsPerBlock != 0) return Status::INVALID_PARAMETER;
  offset_ = offset;
  device_offset_ = nullptr;
  return Status::SUCCESS;
}

Status Op::SetOffset(const uint64_t* device_offset, uint64_t added) {
  if (device_offset == nullptr || added % kWordsPerBlock != 0) return Status::INVALID_PARAMETER;
  device_offset_ = device_offset;
  offset_ = added;
  return Status::SUCCESS;
}

Status Op::RunFlash(Handle& h, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k,
                    const Tensor& v, const Tensor& mask_or_empty, const MemoryMaintainer&) const {
  const Tensor& mask = given(mask_or_empty);
  return Call(h, Class::SDPA, "SeededAttention::RunFlash", "FLASH")
      .out("out", out)
      .out("lse", lse)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .optional_in("mask", mask)
      .run([&](Call& c) -> Work {
        const AttentionParameters p{*this};
        check_flash(p, out, q, k, v);
        check_lse(lse, q);
        const Word seed{seed_, word(c, device_seed_)}, offset{offset_, word(c, device_offset_)};
        const Flash f = flash(c, p, q, k, v, mask, seed, offset);
        return [f, o = c.alias(out), l = c.alias(lse)] { flash_forward(f, o, l); };
      });
}

Status Op::RunFlashBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v, Tensor& grad_mask,
                       const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& mask_or_empty, const Tensor& out, const Tensor& lse,
                       const MemoryMaintainer&) const {
  const Tensor& mask = given(mask_or_empty);
  return Call(h, Class::SDPA, "SeededAttention::RunFlashBwd", "FLASH")
      .out("grad_q", grad_q)
      .out("grad_k", grad_k)
      .out("grad_v", grad_v)
      .optional_out("grad_mask", grad_mask)
      .in("grad_out", grad_out)
      .in("q", q)
      .in("k", k)
      .in("v", v)
      .optional_in("mask", mask)
      .in("out", out)
      .in("lse", lse)
      .run([&](Call& c) -> Work {
        const AttentionParameters p{*this};
        check_flash_backward(p, grad_q, grad_k, grad_v, grad_out, q, k, v, out, lse);
        check_grad_mask(grad_mask, mask, q, k);
        const Word seed{seed_, word(c, device_seed_)}, offset{offset_, word(c, device_offset_)};
        const Flash f = flash(c, p, q, k, v, mask, seed, offset);
        return [f, o = c.alias(out), l = c.alias(lse), go = c.alias(grad_out), gq = c.alias(grad_q),
                gk = c.alias(grad_k), gv = c.alias(grad_v),
                gm = absent(grad_mask) ? at::Tensor() : c.alias(grad_mask)] {
          flash_backward(f, o, l, go, {.q = gq, .k = gk, .v = gv, .weights = {}, .bias = gm});
        };
      });
}

}  // namespace musa::dnn
