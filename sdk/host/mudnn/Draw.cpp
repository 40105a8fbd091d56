#include "Draw.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/mul.h>

#include <array>

#include "murand_philox.h"
#include "musa_host.h"

namespace musa::dnn::internal {
namespace {

constexpr int64_t kBlocksPerPiece = 4096;  // of a thread: some 20 us

uint64_t read(const at::Tensor& word) { return static_cast<uint64_t>(word.item<int64_t>()); }

}  // namespace

void draw(const at::Tensor& kept, double p, const Word& seed, const Word& offset) {
  const uint64_t from = seed.device.defined() ? read(seed.device) : seed.value;
  const uint64_t at = offset.value + (offset.device.defined() ? read(offset.device) : 0);
  const uint32_t first = first_kept(p);
  const int64_t count = kept.numel();
  bool* data = kept.mutable_data_ptr<bool>();
  const auto draw_block = [=](int64_t block) {
    const rand::Words4 w =
        rand::philox_block(from, static_cast<uint64_t>(block), at / kWordsPerBlock);
    return std::array{w.x >= first, w.y >= first, w.z >= first, w.w >= first};
  };
  const int64_t whole = count / kWordsPerBlock;
  host::parallel_for(0, whole, kBlocksPerPiece, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto keeps = draw_block(block);
      std::copy_n(keeps.begin(), kWordsPerBlock, data + block * kWordsPerBlock);
    }
  });
  const auto keeps = draw_block(whole);
  std::copy_n(keeps.begin(), count % kWordsPerBlock, data + whole * kWordsPerBlock);
}

void drop(const at::Tensor& out, const at::Tensor& in, const at::Tensor& kept, double p,
          const Word& seed, const Word& offset) {
  draw(kept, p, seed, offset);
  scale_kept(out, in, kept, 1 / (1 - p));
}

void scale_kept(const at::Tensor& out, const at::Tensor& in, const at::Tensor& kept, double scale) {
  at::Tensor result = out;
  at::mul_out(result, in, kept);
  // mul_ would round the number to a half type first.
  at::mul_out(result, result, at::native::wrapped_scalar_tensor(scale));
}

}  // namespace musa::dnn::internal
