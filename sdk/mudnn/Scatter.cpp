#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status Scatter::SetMode(Mode mode) {
  if (mode != Mode::UPDATE_ONLY && mode != Mode::ADD) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Scatter::Run(Handle& h, Tensor& out, const Tensor& index, const Tensor& src, int dim,
                    const MemoryMaintainer&) const {
  const char* mode_name = !mode_ ? nullptr : *mode_ == Mode::ADD ? "ADD" : "UPDATE_ONLY";
  return Call(h, Class::SCATTER, "Scatter::Run", mode_name)
      .out("out", out)
      .in("index", index)
      .in("src", src)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        require(type(index) == Type::INT64 || type(index) == Type::INT32,
                "index must be INT64 or INT32");
        require(type(src) == type(out), "src must have the type of out");
        const bool adds = *mode_ == Mode::ADD;
        require(has_kernels(type(out)), "no elements of this type", Status::NOT_SUPPORTED);
        require(!adds || is_floating(type(out)) || is_integral(type(out)),
                "ADD does not take operands of this type", Status::NOT_SUPPORTED);
        require(rank(index) == rank(out) && rank(src) == rank(out),
                "the operands must have one rank");
        const int64_t axis = wrap_dim(dim, rank(out));
        for (int64_t d = 0; d < rank(out); ++d) {
          require(dims(index)[d] <= dims(src)[d], "index must not exceed src");
          require(d == axis || dims(index)[d] <= dims(out)[d],
                  "index must not exceed out off the dimension");
        }
        return [adds, axis, o = c.alias(out), x = c.alias(index), s = c.alias(src)]() mutable {
          const at::Tensor positions = x.to(at::kLong);
          const at::Tensor values = apart(s, o);
          if (adds) {
            o.scatter_add_(axis, positions, values);
          } else {
            o.scatter_(axis, positions, values);
          }
        };
      });
}

}  // namespace musa::dnn
