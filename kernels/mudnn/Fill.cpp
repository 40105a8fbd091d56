#include "kernels/mudnn/Operands.h"
#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/fill_native.h>

#include <ATen/DeviceGuard.h>
#include <ATen/ops/scalar_tensor.h>

namespace at::musa {

Tensor& FillScalar_(Tensor& self, const Scalar& value) {
  const ScalarType dtype = self.scalar_type();
  const Scalar checked = CheckedScalar(value, dtype);
  const c10::musa::OptionalMUSAGuard guard(device_of(self));
  // Writing one value twice is harmless, so expanded tensors are as welcome as on the CPU.
  auto iter = TensorIteratorConfig()
                  .set_check_mem_overlap(false)
                  .check_all_same_dtype(false)
                  .add_output(self)
                  .resize_outputs(false)
                  .build();
  if (iter.numel() == 0) return self;
  if (isComplexType(dtype)) {
    fill_kernel(iter, checked);
    return self;
  }
  if (isFloat8Type(dtype)) {
    // muDNN fills none of them; to it the rounded value is a byte.
    const Tensor rounded = at::scalar_tensor(checked, TensorOptions(dtype)).view(kByte);
    self.view(kByte).fill_(*rounded.const_data_ptr<uint8_t>());
    return self;
  }
  DimArray sizes;
  DimArray strides;
  const int64_t element = static_cast<int64_t>(iter.element_size(0));
  for (int64_t d = iter.ndim(); d-- > 0;) {
    const int64_t step = iter.strides(0)[d] / element;
    sizes.push_back(step == 0 ? 1 : iter.shape()[d]);
    strides.push_back(step);
  }
  if (sizes.size() > kMaxMudnnRank) {
    // More separate dimensions than muDNN counts: slice by slice.
    for (const Tensor& slice : self.unbind(0)) Tensor(slice).fill_(checked);
    return self;
  }
  muTensor out = MakeMUTensor(iter.data_ptr(0), dtype, sizes, strides);
  ::musa::dnn::Fill fill;
  SetValue(fill, checked, dtype);
  CHECK_MUDNN_STATUS(fill.Run(GetMudnnHandle(), out), "fill_");
  return self;
}

Tensor& FillTensor_(Tensor& self, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  const bool may_not_fit = !canCast(value.scalar_type(), self.scalar_type());
  if (self.device() != value.device() || may_not_fit) return self.fill_(value.item());
  // On the device the value is not known here: broadcast it instead of waiting for it.
  if (value.is_alias_of(self)) return self.copy_(value.clone());
  return self.copy_(value);
}

}  // namespace at::musa
