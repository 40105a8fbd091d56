#include <ATen/ops/masked_scatter.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status MaskedScatter::Run(Handle& h, Tensor& inout, const Tensor& mask, const Tensor& src,
                          const MemoryMaintainer&) const {
  return Call(h, Class::MASKED_SCATTER, "MaskedScatter::Run")
      .out("inout", inout)
      .in("mask", mask)
      .in("src", src)
      .run([&](Call& c) -> Work {
        require(type(mask) == Type::BOOL, "mask must be BOOL");
        require(has_kernels(type(inout)), "type", Status::NOT_SUPPORTED);
        require(type(src) == type(inout), "src must have the type of inout");
        require(same_shape(mask, inout), "mask and inout must have one shape");
        return [o = c.alias(inout), m = c.alias(mask), s = c.alias(src)]() mutable {
          o.masked_scatter_(m, apart(s, o));
        };
      });
}

}  // namespace musa::dnn
