#include <ATen/ops/glu.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status Glu::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status Glu::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::GLU, "Glu::Run").out("out", out).in("in", in).run([&](Call& c) -> Work {
    require(is_floating(type(in)), "floating point only", Status::NOT_SUPPORTED);
    require(type(out) == type(in), "out must have the type of in");
    require(rank(out) == rank(in), "out and in must have one rank");
    const int64_t axis = wrap_dim(axis_, rank(in));
    for (int64_t d = 0; d < rank(in); ++d) {
      require(dims(in)[d] == dims(out)[d] * (d == axis ? 2 : 1),
              "out must have half of in along the axis");
    }
    return
        [axis, o = c.alias(out), i = c.alias(in)]() mutable { at::glu_out(o, apart(i, o), axis); };
  });
}

}  // namespace musa::dnn
