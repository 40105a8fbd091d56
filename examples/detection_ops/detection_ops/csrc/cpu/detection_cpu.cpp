// The reference: plain loops over CPU tensors, in the order of the definitions.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

template <typename T>
T overlap(const T* a, const T* b) {
  const T width = std::max<T>(std::min(a[2], b[2]) - std::max(a[0], b[0]), 0);
  const T height = std::max<T>(std::min(a[3], b[3]) - std::max(a[1], b[1]), 0);
  const T both = width * height;
  const T all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;
  return all > 0 ? both / all : 0;
}

// The input at a place between pixels; visit(y, x, weight) names the pixels that take part.
template <typename T, typename Visit>
void bilinear(T y, T x, int64_t height, int64_t width, Visit visit) {
  if (y <= -1 || y >= height || x <= -1 || x >= width) {
    return;
  }
  y = std::min<T>(std::max<T>(y, 0), height - 1);
  x = std::min<T>(std::max<T>(x, 0), width - 1);
  const int64_t y0 = static_cast<int64_t>(std::floor(y)), x0 = static_cast<int64_t>(std::floor(x));
  for (int64_t i : {y0, y0 + 1}) {
    for (int64_t j : {x0, x0 + 1}) {
      const T weight = (1 - std::abs(y - i)) * (1 - std::abs(x - j));
      if (i < height && j < width && weight > 0) {
        visit(i, j, weight);
      }
    }
  }
}

template <typename T, typename Visit>
void for_each_roi_sample(const T* roi, T scale, int64_t row, int64_t column, int64_t out_height,
                         int64_t out_width, int64_t ratio, Visit visit) {
  const T left = roi[1] * scale - T(0.5), top = roi[2] * scale - T(0.5);
  const T cell_width = (roi[3] - roi[1]) * scale / out_width,
          cell_height = (roi[4] - roi[2]) * scale / out_height;
  for (int64_t i = 0; i < ratio; ++i) {
    for (int64_t j = 0; j < ratio; ++j) {
      visit(top + cell_height * (row + (i + T(0.5)) / ratio),
            left + cell_width * (column + (j + T(0.5)) / ratio));
    }
  }
}

}  // namespace

at::Tensor nms_cpu(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  const at::Tensor order =
      std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true)).contiguous();
  const at::Tensor all = boxes.contiguous();
  std::vector<int64_t> kept;
  AT_DISPATCH_FLOATING_TYPES(boxes.scalar_type(), "nms_cpu", [&] {
    const auto* box = all.data_ptr<scalar_t>();
    for (int64_t i = 0; i < order.numel(); ++i) {
      const int64_t candidate = order.data_ptr<int64_t>()[i];
      const bool good = std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
        return overlap(box + other * 4, box + candidate * 4) > static_cast<scalar_t>(threshold);
      });
      if (good) {
        kept.push_back(candidate);
      }
    }
  });
  return at::tensor(kept, at::kLong);
}

at::Tensor roi_align_cpu(const at::Tensor& input, const at::Tensor& rois, double scale,
                         int64_t out_height, int64_t out_width, int64_t ratio) {
  const at::Tensor image = input.contiguous(), regions = rois.contiguous();
  at::Tensor output =
      at::zeros({rois.size(0), input.size(1), out_height, out_width}, input.options());
  const int64_t channels = input.size(1), height = input.size(2), width = input.size(3);
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align_cpu", [&] {
    auto* out = output.data_ptr<scalar_t>();
    for (int64_t n = 0; n < rois.size(0); ++n) {
      const scalar_t* roi = regions.data_ptr<scalar_t>() + n * 5;
      for (int64_t c = 0; c < channels; ++c) {
        const scalar_t* plane = image.data_ptr<scalar_t>() +
                                (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
        for (int64_t cell = 0; cell < out_height * out_width; ++cell) {
          scalar_t sum = 0;
          for_each_roi_sample(roi, static_cast<scalar_t>(scale), cell / out_width, cell % out_width,
                              out_height, out_width, ratio, [&](scalar_t y, scalar_t x) {
                                bilinear(y, x, height, width,
                                         [&](int64_t i, int64_t j, scalar_t weight) {
                                           sum += weight * plane[i * width + j];
                                         });
                              });
          *out++ = sum / (ratio * ratio);
        }
      }
    }
  });
  return output;
}

at::Tensor roi_align_backward_cpu(const at::Tensor& grad, const at::Tensor& rois,
                                  at::IntArrayRef input_size, double scale, int64_t ratio) {
  const at::Tensor gradient = grad.contiguous(), regions = rois.contiguous();
  at::Tensor grad_input = at::zeros(input_size, grad.options());
  const int64_t channels = input_size[1], height = input_size[2], width = input_size[3];
  const int64_t out_height = grad.size(2), out_width = grad.size(3);
  AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "roi_align_backward_cpu", [&] {
    const auto* in = gradient.data_ptr<scalar_t>();
    for (int64_t n = 0; n < rois.size(0); ++n) {
      const scalar_t* roi = regions.data_ptr<scalar_t>() + n * 5;
      for (int64_t c = 0; c < channels; ++c) {
        scalar_t* plane = grad_input.data_ptr<scalar_t>() +
                          (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
        for (int64_t cell = 0; cell < out_height * out_width; ++cell) {
          const scalar_t share = *in++ / (ratio * ratio);
          for_each_roi_sample(roi, static_cast<scalar_t>(scale), cell / out_width, cell % out_width,
                              out_height, out_width, ratio, [&](scalar_t y, scalar_t x) {
                                bilinear(y, x, height, width,
                                         [&](int64_t i, int64_t j, scalar_t weight) {
                                           plane[i * width + j] += weight * share;
                                         });
                              });
        }
      }
    }
  });
  return grad_input;
}

at::Tensor deform_sample_cpu(const at::Tensor& input, const at::Tensor& offset, int64_t kernel,
                             int64_t padding, int64_t stride) {
  const at::Tensor image = input.contiguous(), moved = offset.contiguous();
  const int64_t channels = input.size(1), height = input.size(2), width = input.size(3);
  const int64_t out_height = offset.size(2), out_width = offset.size(3), taps = kernel * kernel;
  at::Tensor columns =
      at::zeros({input.size(0), channels * taps, out_height, out_width}, input.options());
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "deform_sample_cpu", [&] {
    auto* out = columns.data_ptr<scalar_t>();
    for (int64_t n = 0; n < input.size(0); ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        const scalar_t* plane = image.data_ptr<scalar_t>() + (n * channels + c) * height * width;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const scalar_t* dy =
              moved.data_ptr<scalar_t>() + (n * taps + tap) * 2 * out_height * out_width;
          const scalar_t* dx = dy + out_height * out_width;
          for (int64_t place = 0; place < out_height * out_width; ++place) {
            const scalar_t y = place / out_width * stride - padding + tap / kernel + dy[place];
            const scalar_t x = place % out_width * stride - padding + tap % kernel + dx[place];
            scalar_t sum = 0;
            bilinear(y, x, height, width, [&](int64_t i, int64_t j, scalar_t weight) {
              sum += weight * plane[i * width + j];
            });
            *out++ = sum;
          }
        }
      }
    }
  });
  return columns;
}
