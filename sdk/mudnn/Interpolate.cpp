#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward.h>
#include <ATen/ops/_upsample_nearest_exact1d.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward.h>
#include <ATen/ops/_upsample_nearest_exact2d.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward.h>
#include <ATen/ops/_upsample_nearest_exact3d.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bicubic2d_backward.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_bilinear2d_backward.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_linear1d_backward.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest1d_backward.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest2d_backward.h>
#include <ATen/ops/upsample_nearest3d.h>
#include <ATen/ops/upsample_nearest3d_backward.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <ATen/ops/upsample_trilinear3d_backward.h>

#include <array>
#include <cmath>

namespace musa::dnn {

using namespace internal;

namespace {

using Mode = Interpolate::Mode;
using Scale = std::optional<double>;

const char* name(Mode mode) {
  static constexpr const char* kNames[] = {"NEAREST", "NEAREST_EXACT", "LINEAR", "BICUBIC"};
  const auto index = static_cast<size_t>(mode);
  return index < std::size(kNames) ? kNames[index] : nullptr;
}

bool is_nearest(Mode mode) { return mode == Mode::NEAREST || mode == Mode::NEAREST_EXACT; }

// What one resampling is told beside its operands.
struct Resampling {
  Mode mode;
  bool align_corners;
  bool antialias;
  std::vector<int64_t> small, large;  // sizes of the forward input and output, (N, C, spatial ...)
  std::array<Scale, 3> scale;         // output over input; none where it follows from the sizes

  at::IntArrayRef out_size() const { return at::IntArrayRef(large).slice(2); }
  int64_t spatial() const { return static_cast<int64_t>(large.size()) - 2; }
};

bool is_channels_last(const Tensor& t) {
  return format(t) == Tensor::Format::NHWC || format(t) == Tensor::Format::NDHWC;
}

// The operand as (N, C, spatial ...), whichever order its memory has.
at::Tensor image(const Call& c, const Tensor& t) {
  const at::Tensor alias = c.alias(t);
  if (!is_channels_last(t)) return alias;
  std::vector<int64_t> order{0, alias.dim() - 1};
  for (int64_t d = 1; d + 1 < alias.dim(); ++d) order.push_back(d);
  return alias.permute(order);
}

void check_operands(const Tensor& a, const Tensor& b) {
  require(rank(a) == rank(b), "operands must have one rank");
  require(rank(a) >= 3 && rank(a) <= 5, "images have one to three spatial dimensions");
  require(type(a) == type(b), "operands must have one type");
  require(format(a) == format(b), "operands must have one format");
  switch (format(a)) {
    case Tensor::Format::NCW:
      require(rank(a) == 3, "the format does not fit the rank");
      break;
    case Tensor::Format::NHWC:
      require(rank(a) == 4, "the format does not fit the rank");
      break;
    case Tensor::Format::NDHWC:
    case Tensor::Format::NCDHW:
      require(rank(a) == 5, "the format does not fit the rank");
      break;
    case Tensor::Format::NCHW:  // what a tensor has whose format nobody set
      break;
    default:
      refuse(Status::NOT_SUPPORTED, "format");
  }
  require(contiguous(a) && contiguous(b), "operands must be contiguous");
}

void check_mode(const Resampling& r, Type type, bool backward) {
  const bool bytes = type == Type::UINT8 && is_nearest(r.mode) && !backward;
  require(is_floating(type) || bytes, "type", Status::NOT_SUPPORTED);
  require(r.mode != Mode::BICUBIC || r.spatial() == 2, "BICUBIC has two spatial dimensions",
          Status::NOT_SUPPORTED);
  require(!r.antialias || (r.spatial() == 2 && !is_nearest(r.mode)),
          "Antialias is for LINEAR and BICUBIC in two spatial dimensions", Status::NOT_SUPPORTED);
  require(r.small[0] == r.large[0] && r.small[1] == r.large[1], "batch or channels do not agree");
}

// `ratios`: input over output size where `inverted`, output over input size otherwise. A ratio that
// is the sizes' own is left out, so that it is not rounded to float.
std::array<Scale, 3> to_scales(const std::vector<float>& ratios, const Resampling& r,
                               bool inverted) {
  require(static_cast<int64_t>(ratios.size()) == r.spatial(),
          "SetScaleInfo with one number per spatial dimension comes first");
  std::array<Scale, 3> scales;
  for (size_t d = 0; d < ratios.size(); ++d) {
    require(ratios[d] > 0 && std::isfinite(ratios[d]), "a scale must be positive");
    const auto small = static_cast<float>(r.small[2 + d]);
    const auto large = static_cast<float>(r.large[2 + d]);
    if (ratios[d] == (inverted ? small / large : large / small)) continue;
    scales[d] = inverted ? 1 / static_cast<double>(ratios[d]) : static_cast<double>(ratios[d]);
  }
  return scales;
}

at::Tensor resample(const at::Tensor& in, const Resampling& r) {
  const auto size = r.out_size();
  const auto& [a, b, c] = r.scale;
  switch (r.mode) {
    case Mode::NEAREST:
      return r.spatial() == 1   ? at::upsample_nearest1d(in, size, a)
             : r.spatial() == 2 ? at::upsample_nearest2d(in, size, a, b)
                                : at::upsample_nearest3d(in, size, a, b, c);
    case Mode::NEAREST_EXACT:
      return r.spatial() == 1   ? at::_upsample_nearest_exact1d(in, size, a)
             : r.spatial() == 2 ? at::_upsample_nearest_exact2d(in, size, a, b)
                                : at::_upsample_nearest_exact3d(in, size, a, b, c);
    case Mode::LINEAR:
      if (r.antialias) return at::_upsample_bilinear2d_aa(in, size, r.align_corners, a, b);
      return r.spatial() == 1   ? at::upsample_linear1d(in, size, r.align_corners, a)
             : r.spatial() == 2 ? at::upsample_bilinear2d(in, size, r.align_corners, a, b)
                                : at::upsample_trilinear3d(in, size, r.align_corners, a, b, c);
    case Mode::BICUBIC:
      return r.antialias ? at::_upsample_bicubic2d_aa(in, size, r.align_corners, a, b)
                         : at::upsample_bicubic2d(in, size, r.align_corners, a, b);
  }
  return {};
}

at::Tensor resample_backward(const at::Tensor& grad, const Resampling& r) {
  const auto size = r.out_size();
  const at::IntArrayRef in = r.small;
  const bool align = r.align_corners;
  const auto& [a, b, c] = r.scale;
  switch (r.mode) {
    case Mode::NEAREST:
      return r.spatial() == 1   ? at::upsample_nearest1d_backward(grad, size, in, a)
             : r.spatial() == 2 ? at::upsample_nearest2d_backward(grad, size, in, a, b)
                                : at::upsample_nearest3d_backward(grad, size, in, a, b, c);
    case Mode::NEAREST_EXACT:
      return r.spatial() == 1   ? at::_upsample_nearest_exact1d_backward(grad, size, in, a)
             : r.spatial() == 2 ? at::_upsample_nearest_exact2d_backward(grad, size, in, a, b)
                                : at::_upsample_nearest_exact3d_backward(grad, size, in, a, b, c);
    case Mode::LINEAR:
      if (r.antialias) return at::_upsample_bilinear2d_aa_backward(grad, size, in, align, a, b);
      return r.spatial() == 1   ? at::upsample_linear1d_backward(grad, size, in, align, a)
             : r.spatial() == 2 ? at::upsample_bilinear2d_backward(grad, size, in, align, a, b)
                                : at::upsample_trilinear3d_backward(grad, size, in, align, a, b, c);
    case Mode::BICUBIC:
      return r.antialias ? at::_upsample_bicubic2d_aa_backward(grad, size, in, align, a, b)
                         : at::upsample_bicubic2d_backward(grad, size, in, align, a, b);
  }
  return {};
}

}  // namespace

Status Interpolate::SetMode(Mode mode) {
  if (name(mode) == nullptr) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Interpolate::SetScaleInfo(int n, const float* scales) {
  if (n < 1 || n > 3 || scales == nullptr) return Status::INVALID_PARAMETER;
  scales_.assign(scales, scales + n);
  return Status::SUCCESS;
}

Status Interpolate::SetScaleInfo(std::initializer_list<float> scales) {
  return SetScaleInfo(static_cast<int>(scales.size()), scales.begin());
}

Status Interpolate::SetAlignCorners(bool align) {
  align_corners_ = align;
  return Status::SUCCESS;
}

Status Interpolate::SetAntialias(bool antialias) {
  antialias_ = antialias;
  return Status::SUCCESS;
}

Status Interpolate::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::INTERPOLATE, "Interpolate::Run", mode_ ? name(*mode_) : nullptr)
      .out("out", out)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        check_operands(out, in);
        const at::Tensor o = image(c, out), i = image(c, in);
        Resampling r{*mode_, align_corners_, antialias_, i.sizes().vec(), o.sizes().vec(), {}};
        check_mode(r, type(in), /*backward=*/false);
        r.scale = to_scales(scales_, r, /*inverted=*/true);
        return [=] { o.copy_(resample(apart(i, o), r)); };
      });
}

Status Interpolate::RunBackward(Handle& h, Tensor& grad_in, const Tensor& grad_out) const {
  return Call(h, Class::INTERPOLATE, "Interpolate::RunBackward", mode_ ? name(*mode_) : nullptr)
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        check_operands(grad_in, grad_out);
        const at::Tensor gi = image(c, grad_in), go = image(c, grad_out);
        Resampling r{*mode_, align_corners_, antialias_, gi.sizes().vec(), go.sizes().vec(), {}};
        check_mode(r, type(grad_in), /*backward=*/true);
        r.scale = to_scales(scales_, r, /*inverted=*/false);
        return [=] { gi.copy_(resample_backward(apart(go, gi), r)); };
      });
}

}  // namespace musa::dnn
