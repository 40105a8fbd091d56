#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d_backward.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>

#include <tuple>

#include "Results.h"

namespace musa::dnn {

using namespace internal;

namespace {

const char* const kModeNames[] = {"MAXPOOL", "AVGPOOL_COUNT_PAD", "AVGPOOL_COUNT_WITHOUT_PAD",
                                  "ADAPTIVE_AVGPOOL", "ADAPTIVE_MAXPOOL"};

bool takes_indices(Pooling::Mode mode) {
  return mode == Pooling::Mode::MAXPOOL || mode == Pooling::Mode::ADAPTIVE_MAXPOOL;
}

bool is_adaptive(Pooling::Mode mode) {
  return mode == Pooling::Mode::ADAPTIVE_AVGPOOL || mode == Pooling::Mode::ADAPTIVE_MAXPOOL;
}

// The operand as (N, C, H, W), whichever order its memory has.
at::Tensor image(const Call& c, const Tensor& t) {
  const at::Tensor alias = c.alias(t);
  return format(t) == Tensor::Format::NHWC ? alias.permute({0, 3, 1, 2}) : alias;
}

struct Window {
  std::vector<int64_t> kernel, pad, stride, dilation;
  std::optional<int64_t> divisor;
  bool ceil_mode = false;
};

// How many windows there are where an incomplete last one counts: it must begin within the image or
// the padding before it.
int64_t windows_rounded_up(int64_t reach, int64_t stride, int64_t size, int64_t pad) {
  const int64_t windows = (reach + stride - 1) / stride + 1;
  return (windows - 1) * stride >= size + pad ? windows - 1 : windows;
}

// The library is told the output's size and not how it was rounded: where it is not the floor it
// must be the ceiling.
bool rounds_up(const Window& w, bool average, const at::Tensor& small, const at::Tensor& large) {
  require(w.kernel.size() == 2, "SetNdInfo with two spatial dimensions comes first");
  bool fits_floor = true;
  bool fits_ceiling = true;
  for (int d = 0; d < 2; ++d) {
    require(w.kernel[d] > 0 && w.stride[d] > 0 && w.dilation[d] > 0 && w.pad[d] >= 0, "window");
    require(!average || w.dilation[d] == 1, "averages have no dilation", Status::NOT_SUPPORTED);
    const int64_t extent = w.dilation[d] * (w.kernel[d] - 1) + 1;
    require(w.pad[d] <= extent / 2, "more than half of a window is padding");
    const int64_t size = large.size(2 + d);
    const int64_t reach = size + 2 * w.pad[d] - extent;
    const int64_t windows = small.size(2 + d);
    fits_floor = fits_floor && reach >= 0 && windows == reach / w.stride[d] + 1;
    fits_ceiling = fits_ceiling && windows >= 1 && reach > -w.stride[d] &&
                   windows == windows_rounded_up(reach, w.stride[d], size, w.pad[d]);
  }
  require(fits_floor || fits_ceiling, "sizes do not agree");
  return !fits_floor;
}

// Of the integers all have a maximum, without a gradient, and INT64 alone has averages.
void check_type(Pooling::Mode mode, Type type, bool backward) {
  bool ok = is_floating(type);
  switch (mode) {
    case Pooling::Mode::MAXPOOL:
      ok = ok || (is_integral(type) && has_kernels(type) && !backward);
      break;
    case Pooling::Mode::AVGPOOL_COUNT_PAD:
    case Pooling::Mode::AVGPOOL_COUNT_WITHOUT_PAD:
      ok = ok || type == Type::INT64;
      break;
    default:
      break;
  }
  require(ok, "the mode does not pool images of this type", Status::NOT_SUPPORTED);
}

void check_operands(Pooling::Mode mode, const Tensor& small, const Tensor& large,
                    const Tensor& indices, bool backward) {
  require(rank(small) == 4 && rank(large) == 4, "images have rank 4");
  require(type(small) == type(large), "images must have one type");
  check_type(mode, type(small), backward);
  require(format(small) == format(large), "images must have one format");
  require(contiguous(small) && contiguous(large), "images must be contiguous");
  const bool nhwc = format(small) == Tensor::Format::NHWC;
  require(
      dims(small)[0] == dims(large)[0] && dims(small)[nhwc ? 3 : 1] == dims(large)[nhwc ? 3 : 1],
      "batch or channels do not agree");
  if (takes_indices(mode)) {
    require(!absent(indices) && type(indices) == Type::INT64 && same_shape(indices, small) &&
                contiguous(indices),
            "indices must be INT64 in the shape of the pooled image");
  }
}

std::vector<int64_t> widen(int n, const int* values) { return {values, values + n}; }

}  // namespace

Status Pooling::SetMode(Mode mode) {
  if (mode < Mode::MAXPOOL || mode > Mode::ADAPTIVE_MAXPOOL) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Pooling::SetNdInfo(int n, const int* kernel, const int* pad, const int* stride,
                          const int* dilation) {
  if (n < 1 || n > 3 || kernel == nullptr || pad == nullptr || stride == nullptr ||
      dilation == nullptr) {
    return Status::INVALID_PARAMETER;
  }
  kernel_ = widen(n, kernel);
  pad_ = widen(n, pad);
  stride_ = widen(n, stride);
  dilation_ = widen(n, dilation);
  return Status::SUCCESS;
}

Status Pooling::SetNdInfo(std::initializer_list<int> kernel, std::initializer_list<int> pad,
                          std::initializer_list<int> stride, std::initializer_list<int> dilation) {
  if (pad.size() != kernel.size() || stride.size() != kernel.size() ||
      dilation.size() != kernel.size()) {
    return Status::INVALID_PARAMETER;
  }
  return SetNdInfo(static_cast<int>(kernel.size()), kernel.begin(), pad.begin(), stride.begin(),
                   dilation.begin());
}

Status Pooling::SetDivisor(int divisor) {
  if (divisor == 0) return Status::INVALID_PARAMETER;
  divisor_ = divisor;
  return Status::SUCCESS;
}

Status Pooling::Run(Handle& h, Tensor& out, const Tensor& in, Tensor& indices) const {
  return Call(h, Class::POOLING, "Pooling::Run", name_of(mode_, kModeNames))
      .out("out", out)
      .in("in", in)
      .optional_out("indices", indices)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(mode, out, in, indices, /*backward=*/false);
        const at::Tensor o = image(c, out), i = image(c, in);
        const at::Tensor where = takes_indices(mode) ? image(c, indices) : at::Tensor();
        Window w{kernel_, pad_, stride_, dilation_, divisor_};
        if (!is_adaptive(mode)) w.ceil_mode = rounds_up(w, !takes_indices(mode), o, i);
        switch (mode) {
          case Mode::MAXPOOL:
            return [=] {
              produce({o, where}, {i}, [&] {
                return at::max_pool2d_with_indices(i, w.kernel, w.stride, w.pad, w.dilation,
                                                   w.ceil_mode);
              });
            };
          case Mode::ADAPTIVE_MAXPOOL:
            return [=] {
              produce({o, where}, {i},
                      [&] { return at::adaptive_max_pool2d(i, {o.size(2), o.size(3)}); });
            };
          case Mode::ADAPTIVE_AVGPOOL:
            return [=] {
              produce({o}, {i},
                      [&] { return at::_adaptive_avg_pool2d(i, {o.size(2), o.size(3)}); });
            };
          default:
            return [=, count_pad = mode == Mode::AVGPOOL_COUNT_PAD] {
              produce({o}, {i}, [&] {
                return at::avg_pool2d(i, w.kernel, w.stride, w.pad, w.ceil_mode, count_pad,
                                      w.divisor);
              });
            };
        }
      });
}

Status Pooling::RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out,
                       const Tensor& indices) const {
  return Call(h, Class::POOLING, "Pooling::RunBwd", name_of(mode_, kModeNames))
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .optional_in("indices", indices)
      .run([&](Call& c) -> Work {
        const Mode mode = mode_of(mode_);
        check_operands(mode, grad_out, grad_in, indices, /*backward=*/true);
        const at::Tensor gi = image(c, grad_in), go = image(c, grad_out);
        const at::Tensor where = takes_indices(mode) ? image(c, indices) : at::Tensor();
        Window w{kernel_, pad_, stride_, dilation_, divisor_};
        if (!is_adaptive(mode)) w.ceil_mode = rounds_up(w, !takes_indices(mode), go, gi);
        // ATen's formulas take the forward input for its shape and layout only: grad_in has both.
        // Of averages in NHWC order CUDA's formula leaves the padding out, so they go another way.
        switch (mode) {
          case Mode::MAXPOOL:
            return [=] {
              produce({gi}, {go, where}, [&] {
                return at::max_pool2d_with_indices_backward(go, gi, w.kernel, w.stride, w.pad,
                                                            w.dilation, w.ceil_mode, where);
              });
            };
          case Mode::ADAPTIVE_MAXPOOL:
            return [=] {
              produce({gi}, {go, where},
                      [&] { return at::adaptive_max_pool2d_backward(go, gi, where); });
            };
          case Mode::ADAPTIVE_AVGPOOL:
            return [=] {
              produce({gi}, {go}, [&] { return at::_adaptive_avg_pool2d_backward(go, gi); });
            };
          default:
            return [=, count_pad = mode == Mode::AVGPOOL_COUNT_PAD] {
              const at::Tensor g = go.contiguous();
              const auto grad_of = [&](const at::Tensor& input) {
                return at::avg_pool2d_backward(g, input, w.kernel, w.stride, w.pad, w.ceil_mode,
                                               count_pad, w.divisor);
              };
              if (gi.is_contiguous()) {
                produce({gi}, {g}, [&] { return grad_of(gi); });
              } else {
                gi.copy_(grad_of(at::empty(gi.sizes(), gi.options())));
              }
            };
        }
      });
}

}  // namespace musa::dnn
