// im2col and col2im (torch.nn.functional.unfold and fold): patches of images as columns, and sums
// of such columns as images. One thread for each element of the result, so nothing is accumulated
// in memory and sums do not depend on any order of threads.
#include <ATen/DeviceGuard.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/im2col_shape_check.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch_musa/ops/col2im_native.h>
#include <torch_musa/ops/im2col_native.h>

#include "kernels/ported/EachElement.cuh"

namespace at::musa {
namespace {

// How a window slides along one dimension of the image.
struct Window {
  int64_t size, kernel, dilation, padding, stride;

  __host__ __device__ int64_t positions() const {
    return (size + 2 * padding - (dilation * (kernel - 1) + 1)) / stride + 1;
  }
};

struct Geometry {
  Window y, x;
};

Geometry geometry_of(int64_t height, int64_t width, IntArrayRef kernel, IntArrayRef dilation,
                     IntArrayRef padding, IntArrayRef stride) {
  return {{height, kernel[0], dilation[0], padding[0], stride[0]},
          {width, kernel[1], dilation[1], padding[1], stride[1]}};
}

void check_pairs(const char* op, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                 IntArrayRef stride) {
  const auto pair = [op](IntArrayRef values, const char* name) {
    TORCH_CHECK(values.size() == 2, op, ": it is expected ", name, " equals to 2, but got size ",
                values.size());
  };
  pair(kernel, "kernel_size");
  pair(dilation, "dilation");
  pair(padding, "padding");
  pair(stride, "stride");
}

// `out` where kernels can write it as dense memory of these sizes, else a tensor to copy from.
Tensor dense_result(const char* op, const Tensor& self, const Tensor& out, IntArrayRef sizes) {
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), op, ": expected out to have dtype ",
              self.scalar_type(), ", but got ", out.scalar_type());
  TORCH_CHECK(out.device() == self.device(), op, ": expected self and out on one device, got ",
              self.device(), " and ", out.device());
  out.resize_(sizes);  // without a warning, as on the CPU
  return out.is_contiguous() && !out.is_alias_of(self) ? out : at::empty(sizes, self.options());
}

Tensor& deliver(const Tensor& result, Tensor& out) {
  return result.is_same(out) ? out : out.copy_(result);
}

}  // namespace

Tensor& Im2colOut(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation,
                  IntArrayRef padding, IntArrayRef stride, Tensor& out) {
  check_pairs("im2col", kernel_size, dilation, padding, stride);
  native::im2col_shape_check(self, Tensor(), kernel_size[0], kernel_size[1], dilation[0],
                             dilation[1], padding[0], padding[1], stride[0], stride[1]);
  const c10::cuda::OptionalCUDAGuard guard(device_of(self));

  const int64_t channels = self.size(-3);
  const Geometry g =
      geometry_of(self.size(-2), self.size(-1), kernel_size, dilation, padding, stride);
  const int64_t patch = g.y.kernel * g.x.kernel;
  const int64_t rows = g.y.positions(), columns = g.x.positions();
  DimVector sizes(self.sizes().begin(), self.sizes().end() - 3);
  sizes.append({channels * patch, rows * columns});

  const Tensor images = self.contiguous();
  const Tensor result = dense_result("im2col", self, out, sizes);
  DISPATCH_WORD(self.element_size(), [&] {
    const auto* in = static_cast<const word_t*>(images.const_data_ptr());
    auto* to = static_cast<word_t*>(result.mutable_data_ptr());
    native::for_each_index(self.device(), result.numel(), [=] GPU_LAMBDA(int64_t i) {
      // i = (((image * channels + channel) * kernel.y + v) * kernel.x + u) * positions + position
      const int64_t position = i % (rows * columns), tap = i / (rows * columns) % patch;
      const int64_t plane = i / (rows * columns) / patch;
      const int64_t y =
          position / columns * g.y.stride - g.y.padding + tap / g.x.kernel * g.y.dilation;
      const int64_t x =
          position % columns * g.x.stride - g.x.padding + tap % g.x.kernel * g.x.dilation;
      const bool inside = y >= 0 && y < g.y.size && x >= 0 && x < g.x.size;
      to[i] = inside ? in[(plane * g.y.size + y) * g.x.size + x] : word_t();
    });
  });
  return deliver(result, out);
}

Tensor Im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  Tensor out = at::empty({0}, self.options());
  return Im2colOut(self, kernel_size, dilation, padding, stride, out);
}

Tensor& Col2imOut(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size,
                  IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride, Tensor& out) {
  TORCH_CHECK(output_size.size() == 2,
              "col2im: it is expected output_size equals to 2, but got size ", output_size.size());
  check_pairs("col2im", kernel_size, dilation, padding, stride);
  native::col2im_shape_check(self, Tensor(), output_size[0], output_size[1], kernel_size[0],
                             kernel_size[1], dilation[0], dilation[1], padding[0], padding[1],
                             stride[0], stride[1]);
  const c10::cuda::OptionalCUDAGuard guard(device_of(self));

  const Geometry g =
      geometry_of(output_size[0], output_size[1], kernel_size, dilation, padding, stride);
  const int64_t patch = g.y.kernel * g.x.kernel;
  const int64_t rows = g.y.positions(), columns = g.x.positions();
  DimVector sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.append({self.size(-2) / patch, g.y.size, g.x.size});

  const Tensor patches = self.contiguous();
  const Tensor result = dense_result("col2im", self, out, sizes);
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      kHalf, kBFloat16, self.scalar_type(), "col2im_cuda", [&] {
        const auto* in = patches.const_data_ptr<scalar_t>();
        auto* to = result.mutable_data_ptr<scalar_t>();
        native::for_each_index(self.device(), result.numel(), [=] GPU_LAMBDA(int64_t i) {
          const int64_t x = i % g.x.size, y = i / g.x.size % g.y.size;
          const int64_t plane = i / g.x.size / g.y.size;
          at::opmath_type<scalar_t> sum(0);
          for (int64_t tap = 0; tap < patch; ++tap) {
            // The window's place from which this tap reaches the pixel, if there is one.
            const int64_t top = y + g.y.padding - tap / g.x.kernel * g.y.dilation;
            const int64_t left = x + g.x.padding - tap % g.x.kernel * g.x.dilation;
            if (top < 0 || left < 0 || top % g.y.stride != 0 || left % g.x.stride != 0) continue;
            const int64_t row = top / g.y.stride, column = left / g.x.stride;
            if (row >= rows || column >= columns) continue;
            sum += in[((plane * patch + tap) * rows + row) * columns + column];
          }
          to[i] = static_cast<scalar_t>(sum);
        });
      });
  return deliver(result, out);
}

Tensor Col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size,
              IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  Tensor out = at::empty({0}, self.options());
  return Col2imOut(self, output_size, kernel_size, dilation, padding, stride, out);
}

}  // namespace at::musa
