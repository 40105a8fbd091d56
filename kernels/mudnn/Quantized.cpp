// Quantized tensors on musa: what moves their integers about. Quantizing and dequantizing are
// PyTorch's, on the stubs of kernels/ported/AffineQuantizer.cu.

#include <torch_musa/ops/_copy_from_native.h>
#include <torch_musa/ops/_make_per_channel_quantized_tensor_native.h>
#include <torch_musa/ops/_make_per_tensor_quantized_tensor_native.h>
#include <torch_musa/ops/int_repr_native.h>

#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>
#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/_empty_per_channel_affine_quantized.h>
#include <ATen/ops/empty.h>

#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

/// The integers of a quantized tensor, in the same memory.
Tensor integers(const Tensor& quantized) {
  const ScalarType dtype = toUnderlying(quantized.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(
      quantized.scalar_type() != kQUInt4x2 && quantized.scalar_type() != kQUInt2x4, "dtype ",
      quantized.scalar_type(), ", several elements to a byte, has no kernels on musa");
  return at::empty({0}, quantized.options().dtype(dtype))
      .set_(quantized.storage(), quantized.storage_offset(), quantized.sizes(),
            quantized.strides());
}

/// The options of a quantized tensor that holds `self`'s integers. Found out before anything is
/// made of them.
TensorOptions quantized_options(const Tensor& self) {
  const ScalarType dtype = toQIntType(self.scalar_type());
  TORCH_CHECK(isQIntType(dtype), "a quantized tensor is made of uint8, int8 or int32, not of ",
              self.scalar_type());
  return self.options().dtype(dtype);
}

}  // namespace

Tensor IntReprQuantized(const Tensor& self) {
  const c10::musa::MUSAGuard guard(self.device());
  return integers(self).clone(self.suggest_memory_format());
}

Tensor MakePerTensorQuantized(const Tensor& self, double scale, int64_t zero_point) {
  const c10::musa::MUSAGuard guard(self.device());
  const Tensor out = at::_empty_affine_quantized(self.sizes(), quantized_options(self), scale,
                                                 zero_point, self.suggest_memory_format());
  integers(out).copy_(self);
  return out;
}

Tensor MakePerChannelQuantized(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                               int64_t axis) {
  const c10::musa::MUSAGuard guard(self.device());
  const Tensor out = at::_empty_per_channel_affine_quantized(
      self.sizes(), scale, zero_point, axis, quantized_options(self), self.suggest_memory_format());
  integers(out).copy_(self);
  return out;
}

Tensor CopyFromQuantized(const Tensor& self, const Tensor& dst, bool non_blocking) {
  TORCH_CHECK(dst.is_quantized(), "Copying from quantized Tensor to non-quantized Tensor is not ",
              "allowed, please use dequantize to get a float Tensor from a quantized Tensor");
  if (!self.is_quantized()) {
    TORCH_CHECK(self.scalar_type() == kFloat,
                "Quantized copy only works with kFloat as source Tensor");
    const Tensor source = self.to(dst.device()).expand(dst.sizes());
    const Tensor quantized = get_qtensorimpl(dst)->quantizer()->quantize(source);
    integers(dst).copy_(integers(quantized), non_blocking);
    return dst;
  }
  TORCH_CHECK(self.qscheme() == dst.qscheme(),
              "Quantized Copy only works with same qscheme; dst is ", toString(dst.qscheme()),
              " and src ", toString(self.qscheme()));
  TORCH_CHECK(self.scalar_type() == dst.scalar_type(),
              "Quantized copy only works with one dtype; dst is ", dst.scalar_type(), " and src ",
              self.scalar_type());
  set_quantizer_(dst, get_qtensorimpl(self)->quantizer());
  integers(dst).copy_(integers(self), non_blocking);
  return dst;
}

}  // namespace at::musa
