#include <ATen/ops/cat.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;

// All sizes but the axis' agree, and those of the axis add up.
void check_shapes(const Tensor& out, int n, const Tensor* in, int64_t axis) {
  int64_t total = 0;
  for (int i = 0; i < n; ++i) {
    require(type(in[i]) == type(out), "the operands must have one type");
    require(rank(in[i]) == rank(out), "the operands must have one rank");
    for (int64_t d = 0; d < rank(out); ++d) {
      require(d == axis || dims(in[i])[d] == dims(out)[d], "sizes off the axis must agree");
    }
    total += dims(in[i])[axis];
  }
  require(total == dims(out)[axis], "the sizes along the axis must add up to out's");
}

}  // namespace

Status Concat::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status Concat::Run(Handle& h, Tensor& out, int n, const Tensor* in) const {
  Call call(h, Class::CONCAT, "Concat::Run");
  call.out("out", out);
  for (int i = 0; in != nullptr && i < n; ++i) call.in("in", in[i]);
  return call.run([&](Call& c) -> Work {
    require(n > 0 && in != nullptr, "nothing to join");
    const int64_t axis = wrap_dim(axis_, rank(out));
    check_shapes(out, n, in, axis);
    at::Tensor target = c.alias(out);
    std::vector<at::Tensor> sources;
    sources.reserve(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) sources.push_back(c.alias(in[i]));
    return [axis, target, sources = std::move(sources)]() mutable {
      for (at::Tensor& source : sources) source = apart(source, target);
      at::cat_out(target, sources, axis);
    };
  });
}

}  // namespace musa::dnn
