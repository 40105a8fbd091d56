#include "kernels/mudnn/AlongDim.h"
#include "kernels/mudnn/Layout.h"

#include <torch_musa/ops/cat_native.h>

#include <ATen/core/IListRef.h>
#include <ATen/ops/view_as_real.h>

namespace at::musa {
namespace {

// Complex numbers move as pairs of reals.
muTensor moved(const Tensor& tensor, int64_t dim) {
  return DescribeAlong(tensor.is_complex() ? at::view_as_real(tensor) : tensor, dim);
}

}  // namespace

// The meta function has checked shapes and devices and wrapped `dim`; `valid` is the first tensor
// that counts: those of shape {0} are skipped, whatever the rank of the others.
TORCH_IMPL_FUNC(MusaCat)
(const ITensorListRef& tensors, int64_t dim, int64_t /*valid*/, bool /*all_contiguous*/,
 bool /*all_same_dtype*/, bool /*all_same_sizes_and_stride*/, MemoryFormat /*memory_format*/,
 const Tensor& out) {
  if (out.numel() == 0) return;
  const DenseOutput target(out);
  std::vector<Tensor> parts;
  std::vector<muTensor> mu_parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    parts.push_back(tensor.to(out.scalar_type()).contiguous());
    mu_parts.push_back(moved(parts.back(), dim));
  }
  muTensor mu_out = moved(target.tensor(), dim);
  ::musa::dnn::Concat op;
  CHECK_MUDNN_STATUS(op.SetAxis(kAlongAxis), "SetAxis");
  CHECK_MUDNN_STATUS(
      op.Run(GetMudnnHandle(), mu_out, static_cast<int>(mu_parts.size()), mu_parts.data()), "cat");
  target.finish();
}

}  // namespace at::musa
