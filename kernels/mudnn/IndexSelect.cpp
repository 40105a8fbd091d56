#include "kernels/mudnn/AlongDim.h"
#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/index_select_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

namespace at::musa {
namespace {

// Complex numbers move as pairs of reals; a rank-0 operand has one row.
muTensor moved(const Tensor& tensor, int64_t dim) {
  if (!tensor.is_complex()) return DescribeAlong(tensor, dim);
  return DescribeAlong(at::view_as_real(tensor.dim() == 0 ? tensor.view({1}) : tensor), dim);
}

}  // namespace

Tensor& IndexSelectOut(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  dim = maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1,
                    "index_select(): Index is supposed to be a vector, but got dim: ", index.dim(),
                    " with type: ", index.scalar_type(), " and size: ", index.sizes());
  TORCH_CHECK(
      index.scalar_type() == kLong || index.scalar_type() == kInt,
      "index_select(): Expected dtype int32 or int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  TORCH_CHECK(self.device() == index.device() && self.device() == out.device(),
              "index_select(): expected self, index and out on one device, got ", self.device(),
              ", ", index.device(), " and ", out.device());
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  DimArray shape(self.sizes().begin(), self.sizes().end());
  if (self.dim() > 0) {
    TORCH_CHECK_INDEX(self.dim() > 1 || self.size(dim) > 0 || index.numel() == 0,
                      "index out of range in self");
    TORCH_CHECK(self.size(dim) > 0 || index.numel() == 0,
                "index_select(): self indexing axis dim should be positive");
    shape[dim] = index.numel();
  }
  native::resize_output(out, shape);
  if (out.numel() == 0) return out;

  const Tensor source = self.contiguous();
  const Tensor positions = index.contiguous();
  const DenseOutput target(out);
  muTensor mu_out = moved(target.tensor(), dim);
  muTensor mu_index = CreateMUTensor(positions);
  muTensor mu_in = moved(source, dim);
  ::musa::dnn::Gather op;
  CHECK_MUDNN_STATUS(op.SetMode(::musa::dnn::Gather::Mode::GATHER), "SetMode");
  CHECK_MUDNN_STATUS(op.SetAxis(kAlongAxis), "SetAxis");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_index, mu_in, InternalMemAlloc),
                     "index_select");
  target.finish();
  return out;
}

Tensor IndexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor out = at::empty({0}, self.options());
  return IndexSelectOut(self, dim, index, out);
}

}  // namespace at::musa
