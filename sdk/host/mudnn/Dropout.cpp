#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/empty.h>

namespace musa::dnn {

using namespace internal;

namespace {

// Random words come in blocks of four; offsets count words.
constexpr uint64_t kWordsPerBlock = 4;

void check_operands(const Tensor& a, const Tensor& b, const Tensor& mask) {
  require(is_floating(type(a)), "type", Status::NOT_SUPPORTED);
  require(type(a) == type(b) && same_shape(a, b), "operands must be alike");
  require(type(mask) == Type::BOOL && same_shape(a, mask), "mask must be BOOL in the same shape");
  require(contiguous(a) && contiguous(b) && contiguous(mask), "operands must be contiguous");
}

// True with probability 1 - p: element i asks the first word of Philox subsequence i.
at::Tensor draw(int64_t count, double p, uint64_t seed, uint64_t offset) {
  at::Tensor keep = at::empty({count}, at::kBool);
  bool* kept = keep.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < count; ++i) {
    at::Philox4_32 engine(seed, /*subsequence=*/i, offset / kWordsPerBlock);
    kept[i] = engine() * 0x1p-32 >= p;
  }
  return keep;
}

}  // namespace

Status Dropout::SetP(double p) {
  if (!(p >= 0 && p < 1)) return Status::INVALID_PARAMETER;
  p_ = p;
  return Status::SUCCESS;
}

Status Dropout::SetScale(double scale) {
  scale_ = scale;
  return Status::SUCCESS;
}

Status Dropout::SetSeed(uint64_t seed) {
  seed_ = seed;
  return Status::SUCCESS;
}

Status Dropout::SetOffset(uint64_t offset) {
  offset_ = offset;
  return Status::SUCCESS;
}

Status Dropout::RunDropout(Handle& h, Tensor& out, const Tensor& in, Tensor& mask) const {
  return Call(h, Class::DROPOUT, "Dropout::RunDropout")
      .out("out", out)
      .in("in", in)
      .out("mask", mask)
      .run([&](Call& c) -> Work {
        check_operands(out, in, mask);
        return [o = c.alias(out), i = c.alias(in), m = c.alias(mask), p = p_, seed = seed_,
                offset = offset_] {
          m.copy_(draw(m.numel(), p, seed, offset).view(m.sizes()));
          o.copy_(i * m * (1 / (1 - p)));
        };
      });
}

Status Dropout::RunDropoutBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out,
                              const Tensor& mask) const {
  return Call(h, Class::DROPOUT, "Dropout::RunDropoutBwd")
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .in("mask", mask)
      .run([&](Call& c) -> Work {
        check_operands(grad_in, grad_out, mask);
        return [gi = c.alias(grad_in), go = c.alias(grad_out), m = c.alias(mask), scale = scale_] {
          gi.copy_(go * m * scale);
        };
      });
}

}  // namespace musa::dnn
