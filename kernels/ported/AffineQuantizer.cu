// Quantizing and dequantizing, hung on PyTorch's stubs: q = round(x / scale) + zero_point, clamped
// to the integer's range, and back. The arithmetic is float, as on CUDA and the CPU.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/native/quantized/AffineQuantizer.h>

#include <cmath>
#include <limits>

namespace at::native {
namespace {

template <typename scalar_t>
__host__ __device__ inline scalar_t clamped(float q) {
  using int_t = typename scalar_t::underlying;
  // qint32's bounds are no floats: the conversion of one to float rounds away from zero.
  constexpr auto low = std::numeric_limits<int_t>::min();
  constexpr auto high = std::numeric_limits<int_t>::max();
  if (!(q > static_cast<float>(low))) {
    return scalar_t(low);
  }
  return scalar_t(q >= static_cast<float>(high) ? high : static_cast<int_t>(q));
}

// Scales and zero points, one for each index along `axis`, in the shape of the whole.
Tensor along_axis(const Tensor& parameters, const Tensor& like, int64_t axis, ScalarType dtype) {
  DimVector sizes(like.dim(), 1);
  sizes[axis] = parameters.numel();
  return parameters.to(like.device(), dtype).view(sizes).expand(like.sizes());
}

TensorIterator each(const Tensor& out, const Tensor& in) {
  return TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_const_input(in)
      .build();
}

TensorIterator each(const Tensor& out, const Tensor& in, const Tensor& scales,
                    const Tensor& zero_points) {
  return TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_const_input(in)
      .add_const_input(scales)
      .add_const_input(zero_points)
      .build();
}

void quantize_per_tensor(const Tensor& rtensor, Tensor& qtensor, double scale, int64_t zero_point) {
  auto iter = each(qtensor, rtensor);
  const float inverse = 1.0f / static_cast<float>(scale);
  AT_DISPATCH_QINT_TYPES(qtensor.scalar_type(), "quantize_tensor_per_tensor_affine_cuda", [&] {
    gpu_kernel(iter, [=] GPU_LAMBDA(float value) -> scalar_t {
      return clamped<scalar_t>(std::nearbyint(value * inverse) + zero_point);
    });
  });
}

void dequantize_per_tensor(const Tensor& qtensor, Tensor& rtensor, double scale,
                           int64_t zero_point) {
  auto iter = each(rtensor, qtensor);
  const auto step = static_cast<float>(scale);
  AT_DISPATCH_QINT_TYPES(qtensor.scalar_type(), "dequantize_tensor_per_tensor_affine_cuda", [&] {
    gpu_kernel(iter, [=] GPU_LAMBDA(scalar_t value) -> float {
      return static_cast<float>(value.val_ - zero_point) * step;
    });
  });
}

void quantize_per_channel(const Tensor& rtensor, Tensor& qtensor, const Tensor& scales,
                          const Tensor& zero_points, int64_t axis) {
  auto iter = each(qtensor, rtensor, along_axis(scales, rtensor, axis, kDouble),
                   along_axis(zero_points, rtensor, axis, kLong));
  AT_DISPATCH_QINT_TYPES(qtensor.scalar_type(), "quantize_tensor_per_channel_affine_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(float value, double scale, int64_t zero_point) -> scalar_t {
      const float inverse = 1.0f / static_cast<float>(scale);
      return clamped<scalar_t>(std::nearbyint(value * inverse) + zero_point);
    });
  });
}

void dequantize_per_channel(const Tensor& qtensor, Tensor& rtensor, const Tensor& scales,
                            const Tensor& zero_points, int64_t axis) {
  auto iter = each(rtensor, qtensor, along_axis(scales, rtensor, axis, kDouble),
                   along_axis(zero_points, rtensor, axis, kLong));
  AT_DISPATCH_QINT_TYPES(qtensor.scalar_type(), "dequantize_tensor_per_channel_affine_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t value, double scale, int64_t zero_point) -> float {
      return static_cast<float>(value.val_ - zero_point) * static_cast<float>(scale);
    });
  });
}

void quantize_per_channel_float(const Tensor& rtensor, Tensor& qtensor, const Tensor& scales,
                                const Tensor& zero_points, int64_t axis) {
  auto iter = each(qtensor, rtensor, along_axis(scales, rtensor, axis, kFloat),
                   along_axis(zero_points, rtensor, axis, kFloat));
  AT_DISPATCH_QINT_TYPES(
      qtensor.scalar_type(), "quantize_tensor_per_channel_float_qparams_cuda", [&] {
        gpu_kernel(iter, [] GPU_LAMBDA(float value, float scale, float zero_point) -> scalar_t {
          const float inverse = scale == 0 ? 1.0f : 1.0f / scale;
          return clamped<scalar_t>(std::nearbyint(value * inverse + zero_point));
        });
      });
}

void dequantize_per_channel_float(const Tensor& qtensor, Tensor& rtensor, const Tensor& scales,
                                  const Tensor& zero_points, int64_t axis) {
  auto iter = each(rtensor, qtensor, along_axis(scales, rtensor, axis, kFloat),
                   along_axis(zero_points, rtensor, axis, kFloat));
  AT_DISPATCH_QINT_TYPES(
      qtensor.scalar_type(), "dequantize_tensor_per_channel_float_qparams_cuda", [&] {
        gpu_kernel(iter, [] GPU_LAMBDA(scalar_t value, float scale, float zero_point) -> float {
          return (static_cast<float>(value.val_) - zero_point) * scale;
        });
      });
}

}  // namespace

REGISTER_DISPATCH(quantize_tensor_per_tensor_affine_stub, &quantize_per_tensor)
REGISTER_DISPATCH(dequantize_tensor_per_tensor_affine_stub, &dequantize_per_tensor)
REGISTER_DISPATCH(quantize_tensor_per_channel_affine_stub, &quantize_per_channel)
REGISTER_DISPATCH(dequantize_tensor_per_channel_affine_stub, &dequantize_per_channel)
REGISTER_DISPATCH(quantize_tensor_per_channel_float_qparams_stub, &quantize_per_channel_float)
REGISTER_DISPATCH(dequantize_tensor_per_channel_float_qparams_stub, &dequantize_per_channel_float)

}  // namespace at::native
