#include <ATen/ops/nonzero.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status Nonzero::Run(Handle& h, Tensor& out, const Tensor& in, const MemoryMaintainer&) const {
  int64_t found = 0;
  const Status status =
      Call(h, Class::NONZERO, "Nonzero::Run")
          .out("out", out)
          .in("in", in)
          .run_and_wait([&](Call& c) -> Work {
            require(type(out) == Type::INT64, "out must be INT64");
            require(has_kernels(type(in)), "type", Status::NOT_SUPPORTED);
            require(rank(out) == 2 && dims(out)[1] == rank(in),
                    "out must have shape {capacity, rank of in}");
            require(contiguous(out), "out must be contiguous");
            return [&found, o = c.alias(out), i = c.alias(in)] {
              const at::Tensor positions = at::nonzero(i);
              require(positions.size(0) <= o.size(0), "more elements than out can take");
              o.narrow(0, 0, positions.size(0)).copy_(positions);
              found = positions.size(0);
            };
          });
  if (status != Status::SUCCESS) return status;
  return out.SetNdInfo({found, rank(in)});
}

}  // namespace musa::dnn
