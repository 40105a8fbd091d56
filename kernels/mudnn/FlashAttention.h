// muDNN's flash attention as the operators call it. The stand-in's draws dropout by a seed and
// gives the gradient of a mask (mudnn_seeded_attention.h). Moore Threads' library has neither, and
// no such header: there those calls are not made, which kFlashIsSeeded says.
#pragma once

#include <mudnn.h>

#if __has_include(<mudnn_seeded_attention.h>)

#include <mudnn_seeded_attention.h>

namespace at::musa {

inline constexpr bool kFlashIsSeeded = true;
using FlashAttention = ::musa::dnn::SeededAttention;

}  // namespace at::musa

#else

#include <cstdint>

namespace at::musa {

inline constexpr bool kFlashIsSeeded = false;

class FlashAttention : public ::musa::dnn::ScaledDotProductAttention {
  using Base = ::musa::dnn::ScaledDotProductAttention;
  using Status = ::musa::dnn::Status;
  using Operand = ::musa::dnn::Tensor;

 public:
  Status SetSeed(uint64_t /*seed*/) { return Status::NOT_SUPPORTED; }
  Status SetSeed(const uint64_t* /*device_seed*/) { return Status::NOT_SUPPORTED; }
  Status SetOffset(uint64_t /*offset*/) { return Status::NOT_SUPPORTED; }
  Status SetOffset(const uint64_t* /*device_offset*/, uint64_t /*added*/) {
    return Status::NOT_SUPPORTED;
  }

  Status RunFlash(::musa::dnn::Handle& h, Operand& out, Operand& lse, const Operand& q,
                  const Operand& k, const Operand& v, const Operand& mask,
                  const ::musa::dnn::MemoryMaintainer& maintainer) const {
    Operand no_dropout;
    return Base::RunFlash(h, out, lse, q, k, v, mask, no_dropout, maintainer);
  }
  Status RunFlashBwd(::musa::dnn::Handle& h, Operand& grad_q, Operand& grad_k, Operand& grad_v,
                     Operand& /*grad_mask*/, const Operand& grad_out, const Operand& q,
                     const Operand& k, const Operand& v, const Operand& mask, const Operand& out,
                     const Operand& lse, const ::musa::dnn::MemoryMaintainer& maintainer) const {
    const Operand no_dropout;
    return Base::RunFlashBwd(h, grad_q, grad_k, grad_v, grad_out, q, k, v, mask, out, lse,
                             no_dropout, maintainer);
  }
};

}  // namespace at::musa

#endif
