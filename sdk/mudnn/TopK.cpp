#include <ATen/ops/topk.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {

using namespace internal;

Status TopK::SetK(int k) {
  if (k < 1) return Status::INVALID_PARAMETER;
  k_ = k;
  return Status::SUCCESS;
}

Status TopK::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status TopK::SetLargest(bool largest) {
  largest_ = largest;
  return Status::SUCCESS;
}

Status TopK::SetSorted(bool sorted) {
  sorted_ = sorted;
  return Status::SUCCESS;
}

Status TopK::Run(Handle& h, Tensor& values, Tensor& indices, const Tensor& in,
                 const MemoryMaintainer&) const {
  return Call(h, Class::TOP_K, "TopK::Run")
      .out("values", values)
      .out("indices", indices)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(has_kernels(type(in)) && type(in) != Type::BOOL, "no order in this type",
                Status::NOT_SUPPORTED);
        require(type(values) == type(in), "values must have the type of in");
        require(type(indices) == Type::INT64, "indices must be INT64");
        const int64_t dim = wrap_dim(dim_, rank(in));
        require(k_ <= dims(in)[dim], "k exceeds the dimension");
        c10::SmallVector<int64_t, Tensor::kMaxRank> expected(dims(in).begin(), dims(in).end());
        expected[static_cast<size_t>(dim)] = k_;
        require(dims(values).equals(expected) && dims(indices).equals(expected),
                "values and indices must have k along the dimension");
        return [k = k_, dim, largest = largest_, sorted = sorted_, v = c.alias(values),
                x = c.alias(indices), i = c.alias(in)]() mutable {
          at::topk_out(v, x, apart(i, v), k, dim, largest, sorted);
        };
      });
}

}  // namespace musa::dnn
