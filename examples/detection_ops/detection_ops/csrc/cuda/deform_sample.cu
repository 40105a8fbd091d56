// Deformable sampling, the gather step of deformable convolution: column (channel, tap) at an
// output place is the input at that tap, moved by the offset learnt for it.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include "../common/geometry.cuh"

namespace {

template <typename T>
__global__ void deform_sample_kernel(int64_t n, const T* input, const T* offset, int channels,
                                     int height, int width, int kernel, int padding, int stride,
                                     int out_height, int out_width, T* columns) {
  DETECTION_CUDA_LOOP(index, n) {
    const int x = index % out_width, y = index / out_width % out_height;
    const int taps = kernel * kernel;
    const int64_t places = static_cast<int64_t>(out_height) * out_width;
    const int tap = index / places % taps;
    const int channel = index / (places * taps) % channels;
    const int64_t image = index / (places * taps * channels);
    const T* moved = offset + (image * 2 * taps + 2 * tap) * places + y * out_width + x;
    const T at_y = y * stride - padding + tap / kernel + moved[0];
    const T at_x = x * stride - padding + tap % kernel + moved[places];
    const Corners<T> corners = corners_of(at_y, at_x, height, width);
    const T* plane = input + (image * channels + channel) * static_cast<int64_t>(height) * width;
    columns[index] = corners.inside ? sample(plane, corners, width) : 0;
  }
}

}  // namespace

at::Tensor deform_sample_cuda(const at::Tensor& input, const at::Tensor& offset, int64_t kernel,
                              int64_t padding, int64_t stride) {
  TORCH_CHECK(input.is_cuda() && offset.is_cuda(),
              "deform_sample: input and offset must be on the device");
  const at::cuda::CUDAGuard guard(input.device());
  const at::Tensor image = input.contiguous(), moved = offset.contiguous();
  const int64_t out_height = offset.size(2), out_width = offset.size(3);
  at::Tensor columns = at::zeros(
      {input.size(0), input.size(1) * kernel * kernel, out_height, out_width}, input.options());
  const int64_t n = columns.numel();
  if (n == 0) {
    return columns;
  }
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "deform_sample_cuda", [&] {
    deform_sample_kernel<scalar_t>
        <<<blocks_for(n), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
            n, image.data_ptr<scalar_t>(), moved.data_ptr<scalar_t>(), input.size(1), input.size(2),
            input.size(3), kernel, padding, stride, out_height, out_width,
            columns.data_ptr<scalar_t>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return columns;
}
