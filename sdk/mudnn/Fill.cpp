#include <ATen/ops/fill.h>
#include <ATen/ops/masked_fill.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status Fill::SetValue(double value) {
  value_.emplace().set(value);
  return Status::SUCCESS;
}

Status Fill::SetValue(int64_t value) {
  value_.emplace().set(value);
  return Status::SUCCESS;
}

Status Fill::Run(Handle& h, Tensor& out) const {
  return Call(h, Class::FILL, "Fill::Run").out("out", out).run([&](Call& c) -> Work {
    require(value_.has_value(), "no value set");
    return [o = c.alias(out), value = number(*value_, type(out))]() mutable { o.fill_(value); };
  });
}

Status Fill::Run(Handle& h, Tensor& out, const Tensor& mask) const {
  return Call(h, Class::FILL, "Fill::Run")
      .out("out", out)
      .in("mask", mask)
      .run([&](Call& c) -> Work {
        require(value_.has_value(), "no value set");
        require(type(mask) == Type::BOOL, "mask must be BOOL");
        return [o = c.alias(out), m = c.alias_expanded(mask, dims(out)),
                value = number(*value_, type(out))]() mutable { o.masked_fill_(m, value); };
      });
}

}  // namespace musa::dnn
