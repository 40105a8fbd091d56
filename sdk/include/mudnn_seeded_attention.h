// Beyond muDNN's API: ScaledDotProductAttention draws its dropout mask from a state of the
// library's own, which no generator of the caller's can set and no graph's replay can move on, and
// hands the whole mask back. Here the mask follows from a seed and an offset, as Dropout's does, so
// the two numbers are all that the gradient needs. A header of its own, for the day when muDNN has
// this.
#pragma once

#include <cstdint>

#include "mudnn_transformer.h"

namespace musa::dnn {

class MUDNN_API SeededAttention : public ScaledDotProductAttention {
 public:
  // By value, or read from device memory when the call's turn on the stream comes (graph capture).
  Status SetSeed(uint64_t seed);
  Status SetSeed(const uint64_t* device_seed);
  Status SetOffset(uint64_t offset);  // a multiple of 4
  Status SetOffset(const uint64_t* device_offset, uint64_t added);

  // The base class's, whose limits hold. A call uses up N * H * 32 of the offsets.
  Status RunFlash(Handle& h, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k,
                  const Tensor& v, const Tensor& mask, const MemoryMaintainer& maintainer) const;
  // grad_mask, absent or (N, H, L, S) in q's type, is the gradient of a mask that is no BOOL one,
  // before it is added up to the mask's shape.
  Status RunFlashBwd(Handle& h, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v, Tensor& grad_mask,
                     const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                     const Tensor& mask, const Tensor& out, const Tensor& lse,
                     const MemoryMaintainer& maintainer) const;

 private:
  uint64_t seed_ = 0;
  uint64_t offset_ = 0;
  const uint64_t* device_seed_ = nullptr;
  const uint64_t* device_offset_ = nullptr;
};

}  // namespace musa::dnn
