// RoI align: each output cell is the mean of sampling_ratio^2 bilinear samples of its part of the
// region.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include "../common/geometry.cuh"

namespace {

template <typename T>
struct Region {
  int image;
  T top, left, cell_height, cell_width;
};

template <typename T>
__device__ inline Region<T> region_of(const T* roi, T scale, int out_height, int out_width) {
  Region<T> region;
  region.image = static_cast<int>(roi[0]);
  const T half = static_cast<T>(0.5f);
  region.left = roi[1] * scale - half;
  region.top = roi[2] * scale - half;
  region.cell_width = (roi[3] - roi[1]) * scale / out_width;
  region.cell_height = (roi[4] - roi[2]) * scale / out_height;
  return region;
}

// `visit(corners, plane)` for every sample of output cell `index`.
template <typename T, typename Visit>
__device__ inline void for_each_sample(int64_t index, const T* rois, T scale, int channels,
                                       int height, int width, int out_height, int out_width,
                                       int ratio, Visit visit) {
  const int column = index % out_width, row = index / out_width % out_height;
  const int channel = index / (out_width * out_height) % channels;
  const int64_t roi = index / (static_cast<int64_t>(out_width) * out_height * channels);
  const Region<T> region = region_of(rois + roi * 5, scale, out_height, out_width);
  const int64_t plane = (static_cast<int64_t>(region.image) * channels + channel) * height * width;
  const T half = static_cast<T>(0.5f);
  for (int i = 0; i < ratio; ++i) {
    const T y = region.top + region.cell_height * (row + (i + half) / ratio);
    for (int j = 0; j < ratio; ++j) {
      const T x = region.left + region.cell_width * (column + (j + half) / ratio);
      visit(corners_of(y, x, height, width), plane);
    }
  }
}

template <typename T>
__global__ void forward_kernel(int64_t n, const T* input, const T* rois, T scale, int channels,
                               int height, int width, int out_height, int out_width, int ratio,
                               T* output) {
  DETECTION_CUDA_LOOP(index, n) {
    T sum = 0;
    for_each_sample(index, rois, scale, channels, height, width, out_height, out_width, ratio,
                    [&](const Corners<T>& corners, int64_t plane) {
                      if (corners.inside) {
                        sum += sample(input + plane, corners, width);
                      }
                    });
    output[index] = sum / (ratio * ratio);
  }
}

template <typename T>
__global__ void backward_kernel(int64_t n, const T* grad, const T* rois, T scale, int channels,
                                int height, int width, int out_height, int out_width, int ratio,
                                T* grad_input) {
  DETECTION_CUDA_LOOP(index, n) {
    const T share = grad[index] / (ratio * ratio);
    for_each_sample(index, rois, scale, channels, height, width, out_height, out_width, ratio,
                    [&](const Corners<T>& c, int64_t plane) {
                      if (c.inside) {
                        T* image = grad_input + plane;
                        atomicAdd(image + c.y0 * width + c.x0, c.w00 * share);
                        atomicAdd(image + c.y0 * width + c.x1, c.w01 * share);
                        atomicAdd(image + c.y1 * width + c.x0, c.w10 * share);
                        atomicAdd(image + c.y1 * width + c.x1, c.w11 * share);
                      }
                    });
  }
}

}  // namespace

at::Tensor roi_align_cuda(const at::Tensor& input, const at::Tensor& rois, double scale,
                          int64_t out_height, int64_t out_width, int64_t ratio) {
  TORCH_CHECK(input.is_cuda() && rois.is_cuda(), "roi_align: input and rois must be on the device");
  const at::cuda::CUDAGuard guard(input.device());
  const at::Tensor image = input.contiguous(), regions = rois.contiguous();
  at::Tensor output =
      at::zeros({rois.size(0), input.size(1), out_height, out_width}, input.options());
  const int64_t n = output.numel();
  if (n == 0) {
    return output;
  }
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align_cuda", [&] {
    forward_kernel<scalar_t><<<blocks_for(n), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        n, image.data_ptr<scalar_t>(), regions.data_ptr<scalar_t>(), static_cast<scalar_t>(scale),
        input.size(1), input.size(2), input.size(3), out_height, out_width, ratio,
        output.data_ptr<scalar_t>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return output;
}

at::Tensor roi_align_backward_cuda(const at::Tensor& grad, const at::Tensor& rois,
                                   at::IntArrayRef input_size, double scale, int64_t ratio) {
  const at::cuda::CUDAGuard guard(grad.device());
  const at::Tensor gradient = grad.contiguous(), regions = rois.contiguous();
  at::Tensor grad_input = at::zeros(input_size, grad.options());
  const int64_t n = grad.numel();
  if (n == 0) {
    return grad_input;
  }
  AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "roi_align_backward_cuda", [&] {
    backward_kernel<scalar_t><<<blocks_for(n), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        n, gradient.data_ptr<scalar_t>(), regions.data_ptr<scalar_t>(),
        static_cast<scalar_t>(scale), input_size[1], input_size[2], input_size[3], grad.size(2),
        grad.size(3), ratio, grad_input.data_ptr<scalar_t>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return grad_input;
}
