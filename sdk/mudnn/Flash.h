// Flash attention over one batch of equally long samples: what keeps the denominators of the
// softmax instead of its weights.
#pragma once

#include <ATen/core/Tensor.h>

#include "Attention.h"
#include "Draw.h"

namespace musa::dnn::internal {

struct Flash {
  Attention attention;  // without bias: that is made of the mask when the work's turn comes
  at::Tensor mask;      // undefined: none
  bool causal;
  // Where `seeded`, dropout keeps what seed and offset say, in both directions; else what
  // attention.kept says, or everything.
  bool seeded = false;
  Word seed = {}, offset = {};
};

// The attention with its masks.
Attention with_mask(Attention a, const at::Tensor& mask, bool causal);

void flash_forward(const Flash& f, const at::Tensor& out, const at::Tensor& lse);

// The gradients of q, k and v, and of the bias where it is defined, go into `grads`.
void flash_backward(const Flash& f, const at::Tensor& out, const at::Tensor& lse,
                    const at::Tensor& grad_out, const AttentionGradients& grads);

}  // namespace musa::dnn::internal
