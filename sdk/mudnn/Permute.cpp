#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status Permute::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::PERMUTE, "Permute::Run")
      .out("out", out)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(type(out) == type(in), "out and in must have one type");
        require(same_shape(out, in), "out and in must have one shape");
        return [o = c.alias(out), i = c.alias(in)]() mutable { o.copy_(apart(i, o)); };
      });
}

}  // namespace musa::dnn
