#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;

void check_elements(const Tensor& out, const Tensor& index, const Tensor& in, int64_t axis) {
  require(has_kernels(type(in)), "no elements of this type", Status::NOT_SUPPORTED);
  require(same_shape(out, index), "out must have the shape of index");
  require(rank(index) == rank(in), "index and in must have one rank");
  for (int64_t d = 0; d < rank(in); ++d) {
    require(d == axis || dims(index)[d] <= dims(in)[d], "index must not exceed in off the axis");
  }
}

void check_slices(const Tensor& out, const Tensor& index, const Tensor& in, int64_t axis) {
  c10::SmallVector<int64_t, 16> expected(dims(in).begin(), dims(in).begin() + axis);
  expected.append(dims(index).begin(), dims(index).end());
  expected.append(dims(in).begin() + axis + 1, dims(in).end());
  require(dims(out).equals(expected), "out must have index's shape in place of the axis");
}

}  // namespace

Status Gather::SetMode(Mode mode) {
  if (mode != Mode::GATHER && mode != Mode::GATHER_ELEMENTS) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Gather::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status Gather::Run(Handle& h, Tensor& out, const Tensor& index, const Tensor& in) const {
  const char* mode_name = !mode_ ? nullptr : *mode_ == Mode::GATHER ? "GATHER" : "GATHER_ELEMENTS";
  return Call(h, Class::GATHER, "Gather::Run", mode_name)
      .out("out", out)
      .in("index", index)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        require(type(index) == Type::INT64 || type(index) == Type::INT32,
                "index must be INT64 or INT32");
        require(type(out) == type(in), "out must have the type of in");
        const int64_t axis = wrap_dim(axis_, rank(in));
        if (*mode_ == Mode::GATHER_ELEMENTS) {
          check_elements(out, index, in, axis);
          return [axis, o = c.alias(out), x = c.alias(index), i = c.alias(in)]() mutable {
            at::gather_out(o, apart(i, o), axis, x.to(at::kLong));
          };
        }
        check_slices(out, index, in, axis);
        return [axis, o = c.alias(out), x = c.alias(index), i = c.alias(in)]() mutable {
          const at::Tensor source = apart(i, o);
          if (x.dim() == 1) {
            at::index_select_out(o, source, axis, x);
            return;
          }
          const at::Tensor slices = at::index_select(source, axis, x.reshape({-1}));
          o.copy_(slices.reshape(o.sizes()));
        };
      });
}

Status Gather::Run(Handle& h, Tensor& out, const Tensor& index, const Tensor& in,
                   const MemoryMaintainer&) const {
  return Run(h, out, index, in);
}

}  // namespace musa::dnn
