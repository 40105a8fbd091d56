#include <ATen/ops/gather.h>
#include <ATen/ops/sort.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

namespace {

bool has_order(Type type) { return type != Type::FP8_E4M3 && type != Type::FP8_E5M2; }

}  // namespace

Status Sort::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status Sort::SetDescending(bool descending) {
  descending_ = descending;
  return Status::SUCCESS;
}

Status Sort::SetStable(bool stable) {
  stable_ = stable;
  return Status::SUCCESS;
}

Status Sort::Run(Handle& h, Tensor& values, Tensor& indices, const Tensor& in,
                 const MemoryMaintainer&) const {
  return Call(h, Class::SORT, "Sort::Run")
      .out("values", values)
      .out("indices", indices)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(has_order(type(in)), "no order of 8-bit floats", Status::NOT_SUPPORTED);
        require(type(values) == type(in), "values must have the type of in");
        require(type(indices) == Type::INT64, "indices must be INT64");
        require(same_shape(values, in) && same_shape(indices, in),
                "the operands must have one shape");
        return [dim = wrap_dim(dim_, rank(in)), descending = descending_, stable = stable_,
                v = c.alias(values), x = c.alias(indices), i = c.alias(in)]() mutable {
          at::sort_out(v, x, apart(i, v), stable, dim, descending);
        };
      });
}

Status SortByKey::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status SortByKey::SetDescending(bool descending) {
  descending_ = descending;
  return Status::SUCCESS;
}

Status SortByKey::SetStable(bool stable) {
  stable_ = stable;
  return Status::SUCCESS;
}

Status SortByKey::Run(Handle& h, Tensor& key_out, Tensor& value_out, const Tensor& key_in,
                      const Tensor& value_in, const MemoryMaintainer&) const {
  return Call(h, Class::SORT_BY_KEY, "SortByKey::Run")
      .out("key_out", key_out)
      .out("value_out", value_out)
      .in("key_in", key_in)
      .in("value_in", value_in)
      .run([&](Call& c) -> Work {
        require(has_order(type(key_in)), "no order of 8-bit floats", Status::NOT_SUPPORTED);
        require(type(value_in) != Type::FP8_E5M2, "no elements of this type",
                Status::NOT_SUPPORTED);
        require(type(key_out) == type(key_in), "key_out must have the type of key_in");
        require(type(value_out) == type(value_in), "value_out must have the type of value_in");
        require(same_shape(key_out, key_in) && same_shape(value_out, key_in) &&
                    same_shape(value_in, key_in),
                "the operands must have one shape");
        return [dim = wrap_dim(dim_, rank(key_in)), descending = descending_, stable = stable_,
                ko = c.alias(key_out), vo = c.alias(value_out), ki = c.alias(key_in),
                vi = c.alias(value_in)]() mutable {
          auto [keys, order] = at::sort(ki, stable, dim, descending);
          at::Tensor values = at::gather(vi, dim, order);
          ko.copy_(keys);
          vo.copy_(values);
        };
      });
}

}  // namespace musa::dnn
