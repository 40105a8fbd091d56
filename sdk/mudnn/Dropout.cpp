#include "Internal.h"
#include "mudnn_nn.h"

#include "Draw.h"
#include "Words.h"

namespace musa::dnn {

using namespace internal;

namespace {

void check_operands(const Tensor& a, const Tensor& b, const Tensor& mask) {
  require(is_floating(type(a)), "type", Status::NOT_SUPPORTED);
  require(type(a) == type(b) && same_shape(a, b), "operands must be alike");
  require(type(mask) == Type::BOOL && same_shape(a, mask), "mask must be BOOL in the same shape");
  require(contiguous(a) && contiguous(b) && contiguous(mask), "operands must be contiguous");
}

// For work that goes element by element: the same elements may be read and written.
at::Tensor same_or_apart(const at::Tensor& in, const at::Tensor& out) {
  return in.const_data_ptr() == out.const_data_ptr() ? in : apart(in, out);
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
  device_seed_ = nullptr;
  return Status::SUCCESS;
}

Status Dropout::SetSeed(const uint64_t* device_seed) {
  if (device_seed == nullptr) return Status::INVALID_PARAMETER;
  device_seed_ = device_seed;
  return Status::SUCCESS;
}

Status Dropout::SetOffset(uint64_t offset) {
  offset_ = offset;
  device_offset_ = nullptr;
  return Status::SUCCESS;
}

Status Dropout::SetOffset(const uint64_t* device_offset, uint64_t added) {
  if (device_offset == nullptr) return Status::INVALID_PARAMETER;
  device_offset_ = device_offset;
  offset_ = added;
  return Status::SUCCESS;
}

Status Dropout::RunDropout(Handle& h, Tensor& out, const Tensor& in, Tensor& mask) const {
  return Call(h, Class::DROPOUT, "Dropout::RunDropout")
      .out("out", out)
      .in("in", in)
      .out("mask", mask)
      .run([&](Call& c) -> Work {
        check_operands(out, in, mask);
        const Word seed{seed_, word(c, device_seed_)}, offset{offset_, word(c, device_offset_)};
        const at::Tensor o = c.alias(out), m = c.alias(mask);
        require(are_apart(o, m), "out and mask must not share memory");
        return [=, i = c.alias(in), p = p_] {
          drop(o, apart(same_or_apart(i, o), m), m, p, seed, offset);
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
        return [gi = c.alias(grad_in), go = c.alias(grad_out), m = c.alias(mask),
                scale = number(scale_, type(grad_in))] {
          scale_kept(gi, same_or_apart(go, gi), apart(m, gi), scale);
        };
      });
}

}  // namespace musa::dnn
