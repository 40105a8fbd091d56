// muDNN's Interpolate against ATen and autograd.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/_upsample_nearest_exact1d.h>
#include <ATen/ops/_upsample_nearest_exact2d.h>
#include <ATen/ops/_upsample_nearest_exact3d.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest3d.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <functional>
#include <vector>

#include "device_tensor.h"

namespace {

using namespace musa::dnn;
using check::DeviceTensor;
using Mode = Interpolate::Mode;

constexpr double kTolerance = 1e-5;

Handle& handle() {
  static Handle h(0);
  return h;
}

// Input over output size, as Run takes it; RunBackward takes the inverse.
std::vector<float> ratios(const at::Tensor& above, const at::Tensor& below) {
  std::vector<float> result;
  for (int64_t d = 2; d < above.dim(); ++d) {
    result.push_back(static_cast<float>(above.size(d)) / static_cast<float>(below.size(d)));
  }
  return result;
}

void check(Interpolate op, const at::Tensor& x,
           const std::function<at::Tensor(const at::Tensor&)>& reference) {
  const at::Tensor l = x.detach().clone().requires_grad_();
  const at::Tensor y = reference(l);
  const at::Tensor g = at::randn_like(y);
  y.backward(g);
  DeviceTensor in(x), out(at::zeros_like(y)), grad(g), grad_in(at::zeros_like(x));
  const auto forward = ratios(x, y), backward = ratios(y, x);
  op.SetScaleInfo(static_cast<int>(forward.size()), forward.data());
  CHECK_OK(op.Run(handle(), out, in));
  CHECK_CLOSE(out.read(), y.detach(), kTolerance);
  op.SetScaleInfo(static_cast<int>(backward.size()), backward.data());
  CHECK_OK(op.RunBackward(handle(), grad_in, grad));
  CHECK_CLOSE(grad_in.read(), l.grad(), kTolerance);
}

Interpolate of(Mode mode, bool align = false, bool antialias = false) {
  Interpolate op;
  op.SetMode(mode);
  op.SetAlignCorners(align);
  op.SetAntialias(antialias);
  return op;
}

const at::Tensor& line() {
  static const at::Tensor t = at::randn({2, 3, 7});
  return t;
}
const at::Tensor& image() {
  static const at::Tensor t = at::randn({2, 3, 5, 7});
  return t;
}
const at::Tensor& volume() {
  static const at::Tensor t = at::randn({2, 3, 4, 5, 6});
  return t;
}

TEST(interpolate_nearest) {
  const auto op = of(Mode::NEAREST);
  check(op, line(), [](auto& t) { return at::upsample_nearest1d(t, {11}); });
  check(op, image(), [](auto& t) { return at::upsample_nearest2d(t, {8, 3}); });
  check(op, volume(), [](auto& t) { return at::upsample_nearest3d(t, {5, 9, 4}); });
}

TEST(interpolate_nearest_exact) {
  const auto op = of(Mode::NEAREST_EXACT);
  check(op, line(), [](auto& t) { return at::_upsample_nearest_exact1d(t, {11}); });
  check(op, image(), [](auto& t) { return at::_upsample_nearest_exact2d(t, {8, 3}); });
  check(op, volume(), [](auto& t) { return at::_upsample_nearest_exact3d(t, {5, 9, 4}); });
}

TEST(interpolate_linear) {
  for (bool align : {false, true}) {
    const auto op = of(Mode::LINEAR, align);
    check(op, line(), [=](auto& t) { return at::upsample_linear1d(t, {11}, align); });
    check(op, image(), [=](auto& t) { return at::upsample_bilinear2d(t, {8, 3}, align); });
    check(op, volume(), [=](auto& t) { return at::upsample_trilinear3d(t, {5, 9, 4}, align); });
    check(of(Mode::LINEAR, align, true), image(),
          [=](auto& t) { return at::_upsample_bilinear2d_aa(t, {3, 9}, align); });
  }
}

TEST(interpolate_bicubic) {
  for (bool align : {false, true}) {
    check(of(Mode::BICUBIC, align), image(),
          [=](auto& t) { return at::upsample_bicubic2d(t, {8, 3}, align); });
    check(of(Mode::BICUBIC, align, true), image(),
          [=](auto& t) { return at::_upsample_bicubic2d_aa(t, {3, 9}, align); });
  }
}

// The ratio is its own, not the sizes': as torch's scale_factor with recompute_scale_factor=False.
TEST(interpolate_takes_the_ratio_it_is_given) {
  const at::Tensor y = at::upsample_bilinear2d(image(), {12, 16}, false, 2.5, 2.4);
  DeviceTensor in(image()), out(at::zeros_like(y));
  auto op = of(Mode::LINEAR);
  op.SetScaleInfo({1 / 2.5f, 1 / 2.4f});
  CHECK_OK(op.Run(handle(), out, in));
  CHECK_CLOSE(out.read(), y, kTolerance);
}

TEST(interpolate_channels_last_memory) {
  const auto cl = at::MemoryFormat::ChannelsLast;
  const at::Tensor y = at::upsample_bilinear2d(image(), {8, 3}, false);
  DeviceTensor in(image().contiguous(cl)), out(at::zeros(y.sizes()).contiguous(cl));
  in.desc.SetFormat(Tensor::Format::NHWC);
  in.desc.SetNdInfo({2, 5, 7, 3});
  out.desc.SetFormat(Tensor::Format::NHWC);
  out.desc.SetNdInfo({2, 8, 3, 3});
  auto op = of(Mode::LINEAR);
  op.SetScaleInfo({5 / 8.0f, 7 / 3.0f});
  CHECK_OK(op.Run(handle(), out, in));
  CHECK_CLOSE(out.read(), y, kTolerance);
}

TEST(interpolate_bytes) {
  const at::Tensor x = at::randint(0, 255, {1, 2, 4, 4}, at::kByte);
  DeviceTensor in(x), out(at::zeros({1, 2, 8, 8}, at::kByte));
  auto op = of(Mode::NEAREST);
  op.SetScaleInfo({0.5f, 0.5f});
  CHECK_OK(op.Run(handle(), out, in));
  CHECK(out.read().equal(at::upsample_nearest2d(x, {8, 8})));
  op.SetMode(Mode::LINEAR);
  CHECK_STATUS(op.Run(handle(), out, in), NOT_SUPPORTED);
}

TEST(interpolate_refuses) {
  DeviceTensor in(image()), out(at::zeros({2, 3, 8, 3})), other(at::zeros({2, 4, 8, 3}));
  DeviceTensor row(line()), long_row(at::zeros({2, 3, 11}));
  auto op = of(Mode::LINEAR);
  CHECK_STATUS(op.Run(handle(), out, in), INVALID_PARAMETER);  // no ScaleInfo
  op.SetScaleInfo({0.5f});
  CHECK_STATUS(op.Run(handle(), out, in), INVALID_PARAMETER);
  op.SetScaleInfo({5 / 8.0f, 7 / 3.0f});
  CHECK_STATUS(op.Run(handle(), other, in), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(handle(), row, in), INVALID_PARAMETER);
  auto cubic = of(Mode::BICUBIC);
  cubic.SetScaleInfo({0.5f});
  CHECK_STATUS(cubic.Run(handle(), long_row, row), NOT_SUPPORTED);
  op.SetScaleInfo({0.0f, 1.0f});
  CHECK_STATUS(op.Run(handle(), out, in), INVALID_PARAMETER);
  op.SetScaleInfo({5 / 8.0f, 7 / 3.0f});
  CHECK_OK(op.Run(handle(), out, in));
}

}  // namespace
