#include "kernels/mudnn/AlongDim.h"
#include "kernels/mudnn/Layout.h"

#include <torch_musa/ops/sort_native.h>
#include <torch_musa/ops/topk_native.h>

#include <ATen/WrapDimUtils.h>

namespace at::musa {
namespace {

// Bools order like the bytes they are.
muTensor ordered(const Tensor& tensor, int64_t dim) {
  const ScalarType dtype = tensor.scalar_type() == kBool ? kByte : tensor.scalar_type();
  return DescribeAlong(tensor, dim, dtype);
}

}  // namespace

TORCH_IMPL_FUNC(MusaSort)
(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending, const Tensor& values,
 const Tensor& indices) {
  if (self.numel() == 0) return;
  dim = maybe_wrap_dim(dim, self.dim());
  if (self.scalar_type() != kBool) CheckComputeType(self.scalar_type(), "sort");
  const Tensor in = self.contiguous();
  const DenseOutput sorted_values(values);
  const DenseOutput positions(indices);
  muTensor mu_values = ordered(sorted_values.tensor(), dim);
  muTensor mu_indices = ordered(positions.tensor(), dim);
  muTensor mu_in = ordered(in, dim);
  ::musa::dnn::Sort op;
  CHECK_MUDNN_STATUS(op.SetDim(kAlongAxis), "SetDim");
  CHECK_MUDNN_STATUS(op.SetDescending(descending), "SetDescending");
  CHECK_MUDNN_STATUS(op.SetStable(stable.value_or(false)), "SetStable");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_values, mu_indices, mu_in, InternalMemAlloc),
                     "sort");
  sorted_values.finish();
  positions.finish();
}

TORCH_IMPL_FUNC(MusaTopk)
(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const Tensor& values,
 const Tensor& indices) {
  if (values.numel() == 0) return;
  dim = maybe_wrap_dim(dim, self.dim());
  CheckComputeType(self.scalar_type(), "topk_cpu");
  const Tensor in = self.contiguous();
  const DenseOutput found(values);
  const DenseOutput positions(indices);
  muTensor mu_values = ordered(found.tensor(), dim);
  muTensor mu_indices = ordered(positions.tensor(), dim);
  muTensor mu_in = ordered(in, dim);
  ::musa::dnn::TopK op;
  CHECK_MUDNN_STATUS(op.SetK(static_cast<int>(k)), "SetK");
  CHECK_MUDNN_STATUS(op.SetDim(kAlongAxis), "SetDim");
  CHECK_MUDNN_STATUS(op.SetLargest(largest), "SetLargest");
  CHECK_MUDNN_STATUS(op.SetSorted(sorted), "SetSorted");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_values, mu_indices, mu_in, InternalMemAlloc),
                     "topk");
  found.finish();
  positions.finish();
}

}  // namespace at::musa
