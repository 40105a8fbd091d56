#include "Internal.h"
#include "mudnn_blas.h"

#include <ATen/ops/dot.h>

#include "Tf32.h"

namespace musa::dnn {

using namespace internal;

Status Dot::SetComputeMode(ComputeMode mode) {
  if (mode != ComputeMode::SCALAR && mode != ComputeMode::TENSOR) return Status::INVALID_PARAMETER;
  compute_mode_ = mode;
  return Status::SUCCESS;
}

Status Dot::Run(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                const MemoryMaintainer&) const {
  return Call(h, Class::DOT, "Dot::Run")
      .out("out", out)
      .in("l", l)
      .in("r", r)
      .run([&](Call& c) -> Work {
        require(rank(l) == 1 && same_shape(l, r), "l and r must be vectors of one length");
        require(numel(out) == 1, "out must hold one element");
        require(contiguous(l) && contiguous(r), "l and r must be contiguous");
        // It is the matrix product's code that runs, with its types.
        require(is_floating(type(l)) && type(l) != Type::DOUBLE, "type", Status::NOT_SUPPORTED);
        require(type(l) == type(r) && type(l) == type(out), "operands must have one type");
        return [o = c.alias(out, {}, {}), a = c.alias(l), b = c.alias(r),
                tf32 = uses_tf32(h, compute_mode_, type(l))] {
          o.copy_(tf32 ? at::dot(to_tf32(a), to_tf32(b)) : at::dot(a, b));
        };
      });
}

}  // namespace musa::dnn
