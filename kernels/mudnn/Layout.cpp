#include "kernels/mudnn/Layout.h"

#include <ATen/ops/empty.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace at::musa {

muTensor DescribeDense(const Tensor& tensor, MemoryFormat format) {
  if (!tensor.defined()) return {};
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous(format));
  CheckOnMUSA(tensor, "DescribeDense");
  if (format != MemoryFormat::ChannelsLast) {
    return CreateMUTensor(tensor.data_ptr(), tensor.scalar_type(), tensor.sizes());
  }
  c10::SmallVector<int64_t, 8> sizes(tensor.sizes().begin(), tensor.sizes().end());
  std::rotate(sizes.begin() + 1, sizes.begin() + 2, sizes.end());
  muTensor result = CreateMUTensor(tensor.data_ptr(), tensor.scalar_type(), sizes);
  CHECK_MUDNN_STATUS(result.SetFormat(muTensor::Format::NHWC), "SetFormat");
  return result;
}

MemoryFormat ImageFormat(const Tensor& tensor, const Tensor& other) {
  const auto channels_last = [](const Tensor& t) {
    return t.defined() && t.suggest_memory_format() == MemoryFormat::ChannelsLast;
  };
  return channels_last(tensor) || channels_last(other) ? MemoryFormat::ChannelsLast
                                                       : MemoryFormat::Contiguous;
}

DenseOutput::DenseOutput(const Tensor& out, MemoryFormat format)
    : DenseOutput(out,
                  out.is_contiguous(format) ? out : at::empty(out.sizes(), out.options(), format),
                  format) {}

DenseOutput DenseOutput::accumulating(const Tensor& out) {
  return {out, out.contiguous(), MemoryFormat::Contiguous};
}

void DenseOutput::finish() const {
  if (!dense_.is_same(out_)) out_.copy_(dense_);
}

int ToInt(int64_t value) {
  TORCH_CHECK(value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max(),
              "muDNN takes 32-bit parameters, got ", value);
  return static_cast<int>(value);
}

::musa::dnn::ComputeMode ComputeModeOf(ScalarType dtype) {
  using ::musa::dnn::ComputeMode;
  // On the tensor cores float32 is TF32.
  const bool tensor_cores =
      dtype == kHalf || dtype == kBFloat16 || (dtype == kFloat && allow_tf32());
  return tensor_cores ? ComputeMode::TENSOR : ComputeMode::SCALAR;
}

void CheckFloatingType(ScalarType dtype, const char* op) {
  CheckImplemented(dtype == kFloat || dtype == kHalf || dtype == kBFloat16 || dtype == kDouble,
                   dtype, op);
}

}  // namespace at::musa
