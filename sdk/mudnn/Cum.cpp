#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;

bool takes(Type out, Type in) {
  if (is_floating(in)) return out == in;
  if (in == Type::INT32) return out == Type::INT32 || out == Type::INT64;
  return in == Type::INT64 && out == Type::INT64;
}

}  // namespace

Status Cum::SetMode(Mode mode) {
  if (mode != Mode::ADD && mode != Mode::MUL) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Cum::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status Cum::Run(Handle& h, Tensor& out, const Tensor& in, const MemoryMaintainer&) const {
  const char* mode_name = !mode_ ? nullptr : *mode_ == Mode::ADD ? "ADD" : "MUL";
  return Call(h, Class::CUM, "Cum::Run", mode_name)
      .out("out", out)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        require(takes(type(out), type(in)), "not from in's type to out's", Status::NOT_SUPPORTED);
        require(same_shape(out, in), "out and in must have one shape");
        return [is_sum = *mode_ == Mode::ADD, dim = wrap_dim(dim_, rank(in)), o = c.alias(out),
                i = c.alias(in)]() mutable {
          if (is_sum) {
            at::cumsum_out(o, apart(i, o), dim, o.scalar_type());
          } else {
            at::cumprod_out(o, apart(i, o), dim, o.scalar_type());
          }
        };
      });
}

}  // namespace musa::dnn
