#include <ATen/ops/masked_select.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status MaskedSelect::Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& mask,
                         const MemoryMaintainer&) const {
  int64_t selected = 0;
  const Status status =
      Call(h, Class::MASKED_SELECT, "MaskedSelect::Run")
          .out("out", out)
          .in("in", in)
          .in("mask", mask)
          .run_and_wait([&](Call& c) -> Work {
            require(type(mask) == Type::BOOL, "mask must be BOOL");
            require(type(out) == type(in), "out must have the type of in");
            require(same_shape(mask, in), "mask and in must have one shape");
            require(rank(out) == 1 && contiguous(out), "out must be contiguous, of rank 1");
            return [&selected, o = c.alias(out), i = c.alias(in), m = c.alias(mask)] {
              const at::Tensor values = at::masked_select(i, m);
              require(values.numel() <= o.numel(), "more elements than out can take");
              o.narrow(0, 0, values.numel()).copy_(values);
              selected = values.numel();
            };
          });
  if (status != Status::SUCCESS) return status;
  return out.SetNdInfo({selected});
}

}  // namespace musa::dnn
