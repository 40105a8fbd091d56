#pragma once

// Operand layouts of muDNN's matrix, image and normalization classes. They take dense memory and
// nothing else, so a kernel brings its inputs into a layout, gives the result memory of that layout
// and copies it out where it must.

#include <ATen/core/Tensor.h>

#include "torch_musa/csrc/aten/utils/Utils.h"

namespace at::musa {

/// muDNN's view of `tensor`, which must be dense in `format`: NHWC with the sizes in memory order
/// for ChannelsLast, else row-major. The strides are those of the layout, not those of the tensor:
/// a dimension of size 1 may have any stride in PyTorch, while muDNN reads leading dimensions off
/// the strides.
muTensor DescribeDense(const Tensor& tensor, MemoryFormat format = MemoryFormat::Contiguous);

/// The format an image operator runs in: channels last if `tensor` or `other` is, as on the CPU.
MemoryFormat ImageFormat(const Tensor& tensor, const Tensor& other = {});

/// Memory for a result: `out` itself where it is dense in `format`, else a buffer that finish()
/// copies into it.
class DenseOutput {
 public:
  explicit DenseOutput(const Tensor& out, MemoryFormat format = MemoryFormat::Contiguous);

  /// Like the above for a call that also reads what `out` holds.
  static DenseOutput accumulating(const Tensor& out);

  const Tensor& tensor() const { return dense_; }
  muTensor describe() const { return DescribeDense(dense_, format_); }
  void finish() const;

 private:
  DenseOutput(Tensor out, Tensor dense, MemoryFormat format)
      : out_(std::move(out)), dense_(std::move(dense)), format_(format) {}

  Tensor out_;
  Tensor dense_;
  MemoryFormat format_;
};

/// muDNN counts windows, strides and groups in int; throws where `value` does not fit.
int ToInt(int64_t value);

/// TENSOR for the types that only the tensor cores multiply, and for float where TF32 is allowed;
/// SCALAR for the others.
::musa::dnn::ComputeMode ComputeModeOf(ScalarType dtype);

/// NotImplementedError, worded as AT_DISPATCH words it on the CPU, unless `dtype` is a floating
/// type that muDNN has.
void CheckFloatingType(ScalarType dtype, const char* op);

}  // namespace at::musa
