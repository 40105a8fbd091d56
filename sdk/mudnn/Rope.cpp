#include "Internal.h"
#include "mudnn_transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>

namespace musa::dnn {

using namespace internal;

namespace {

bool dense_rows(const Tensor& t) { return strides(t)[rank(t) - 1] == 1; }

void check_operands(const Tensor& out, const Tensor& in, const Tensor& freqs, bool batch_first) {
  require(is_floating(type(in)) && type(in) != Type::DOUBLE, "type", Status::NOT_SUPPORTED);
  require(type(out) == type(in) && same_shape(out, in), "operands must be alike");
  require(rank(in) == 4, "the operand has rank 4: (sequence, batch, heads, E) or batch first");
  require(dense_rows(in) && dense_rows(out), "the last dimension must be dense");
  require(dims(in)[3] % 2 == 0, "E must be even");
  require(type(freqs) == Type::FLOAT || type(freqs) == type(in), "freqs has in's type or FLOAT");
  require(rank(freqs) == 2 && contiguous(freqs), "freqs is (sequence, E), contiguous");
  require(dims(freqs)[0] == dims(in)[batch_first ? 1 : 0] && dims(freqs)[1] == dims(in)[3],
          "freqs is (sequence, E)");
}

// Angles in the shape that broadcasts over the operand.
at::Tensor angles(const Call& c, const Tensor& freqs, bool batch_first) {
  const at::Tensor f = c.alias(freqs);
  return batch_first ? f.unsqueeze(0).unsqueeze(2) : f.unsqueeze(1).unsqueeze(1);
}

at::Tensor first_half(const at::Tensor& t) { return t.narrow(-1, 0, t.size(-1) / 2); }
at::Tensor second_half(const at::Tensor& t) { return t.narrow(-1, t.size(-1) / 2, t.size(-1) / 2); }
at::Tensor even(const at::Tensor& t) { return t.slice(-1, 0, std::nullopt, 2); }
at::Tensor odd(const at::Tensor& t) { return t.slice(-1, 1, std::nullopt, 2); }
at::Tensor interleave(const at::Tensor& a, const at::Tensor& b) {
  return at::stack({a, b}, -1).flatten(-2);
}

// The quarter turn of every pair, and back.
at::Tensor quarter_turn(const at::Tensor& t, bool interleaved, bool back) {
  const double sign = back ? -1 : 1;
  if (interleaved) return interleave(odd(t) * -sign, even(t) * sign);
  return at::cat({second_half(t) * -sign, first_half(t) * sign}, -1);
}

}  // namespace

Status Rope::SetRotaryInterleaved(bool interleaved) {
  interleaved_ = interleaved;
  return Status::SUCCESS;
}

Status Rope::SetBatchFirst(bool batch_first) {
  batch_first_ = batch_first;
  return Status::SUCCESS;
}

Status Rope::SetMultiLatentAttention(bool multi_latent) {
  multi_latent_ = multi_latent;
  return Status::SUCCESS;
}

Status Rope::Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& freqs) const {
  return Call(h, Class::ROPE, "Rope::Run")
      .out("out", out)
      .in("in", in)
      .in("freqs", freqs)
      .run([&](Call& c) -> Work {
        check_operands(out, in, freqs, batch_first_);
        return [o = c.alias(out), i = c.alias(in), f = angles(c, freqs, batch_first_),
                interleaved = interleaved_, multi_latent = multi_latent_] {
          at::Tensor x = i.to(at::kFloat);
          if (multi_latent) x = at::cat({even(x), odd(x)}, -1);
          const at::Tensor angle = f.to(at::kFloat);
          o.copy_(x * at::cos(angle) +
                  quarter_turn(x, interleaved, /*back=*/false) * at::sin(angle));
        };
      });
}

// The transposed map: turns back, then undoes MultiLatentAttention's order.
Status Rope::RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& freqs) const {
  return Call(h, Class::ROPE, "Rope::RunBwd")
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .in("freqs", freqs)
      .run([&](Call& c) -> Work {
        check_operands(grad_in, grad_out, freqs, batch_first_);
        return [gi = c.alias(grad_in), go = c.alias(grad_out), f = angles(c, freqs, batch_first_),
                interleaved = interleaved_, multi_latent = multi_latent_] {
          const at::Tensor grad = go.to(at::kFloat), angle = f.to(at::kFloat);
          at::Tensor result = grad * at::cos(angle) +
                              quarter_turn(grad * at::sin(angle), interleaved, /*back=*/true);
          if (multi_latent) result = interleave(first_half(result), second_half(result));
          gi.copy_(result);
        };
      });
}

}  // namespace musa::dnn
