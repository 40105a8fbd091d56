#include "Draw.h"

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/empty.h>

namespace musa::dnn::internal {
namespace {

uint64_t read(const at::Tensor& word) { return static_cast<uint64_t>(word.item<int64_t>()); }

}  // namespace

void draw(const at::Tensor& kept, double p, const Word& seed, const Word& offset) {
  const uint64_t from = seed.device.defined() ? read(seed.device) : seed.value;
  const uint64_t at = offset.value + (offset.device.defined() ? read(offset.device) : 0);
  const at::Tensor drawn = at::empty({kept.numel()}, at::kBool);
  bool* data = drawn.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < drawn.numel(); ++i) {
    at::Philox4_32 engine(from, /*subsequence=*/i, at / kWordsPerBlock);
    data[i] = engine() * 0x1p-32 >= p;
  }
  kept.copy_(drawn.view(kept.sizes()));
}

}  // namespace musa::dnn::internal
