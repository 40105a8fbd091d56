#include "Internal.h"
#include "mudnn_transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

namespace musa::dnn {

using namespace internal;

namespace {

// `halved` has half of `whole` along the last dimension.
void check_operands(const Tensor& halved, const Tensor& whole) {
  require(is_floating(type(whole)) && type(whole) != Type::DOUBLE, "type", Status::NOT_SUPPORTED);
  require(type(halved) == type(whole), "operands must have one type");
  require(contiguous(halved) && contiguous(whole), "operands must be contiguous");
  require(rank(halved) == rank(whole), "operands must have one rank");
  for (int64_t d = 0; d < rank(whole); ++d) {
    require(dims(whole)[d] == dims(halved)[d] * (d == rank(whole) - 1 ? 2 : 1),
            "out must have half of in along the last dimension");
  }
}

at::Tensor gate(const at::Tensor& t) { return t.narrow(-1, 0, t.size(-1) / 2); }
at::Tensor up(const at::Tensor& t) { return t.narrow(-1, t.size(-1) / 2, t.size(-1) / 2); }

}  // namespace

Status SwiGlu::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::SWIGLU, "SwiGlu::Run")
      .out("out", out)
      .in("in", in)
      .run([&](Call& c) -> Work {
        check_operands(out, in);
        return [o = c.alias(out), i = c.alias(in)] {
          const at::Tensor wide = i.to(at::kFloat);
          o.copy_(at::silu(gate(wide)) * up(wide));
        };
      });
}

Status SwiGlu::RunBwd(Handle& h, Tensor& grad_in, const Tensor& in, const Tensor& grad_out) const {
  return Call(h, Class::SWIGLU, "SwiGlu::RunBwd")
      .out("grad_in", grad_in)
      .in("in", in)
      .in("grad_out", grad_out)
      .run([&](Call& c) -> Work {
        check_operands(grad_out, in);
        require(same_shape(grad_in, in) && type(grad_in) == type(in) && contiguous(grad_in),
                "grad_in must be like in");
        return [gi = c.alias(grad_in), i = c.alias(in), go = c.alias(grad_out)] {
          // `wide` must not be gi's memory, which is written half by half.
          const at::Tensor wide = apart(i, gi).to(at::kFloat), grad = apart(go, gi).to(at::kFloat);
          const at::Tensor g = gate(wide), s = at::sigmoid(g);
          gate(gi).copy_(grad * up(wide) * s * (1 + g * (1 - s)));
          up(gi).copy_(grad * g * s);
        };
      });
}

}  // namespace musa::dnn
