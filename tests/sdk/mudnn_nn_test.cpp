// muDNN's matrix, convolution, pooling and normalization classes: what they compute, against
// ATen on the CPU, and what they refuse.
#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device_tensor.h"

namespace {

using namespace musa::dnn;
using check::DeviceTensor;

// The memory of a channels-last tensor, described as muDNN wants it.
DeviceTensor& nhwc(DeviceTensor& t, const at::Tensor& host) {
  t.desc.SetFormat(Tensor::Format::NHWC);
  t.desc.SetNdInfo({host.size(0), host.size(2), host.size(3), host.size(1)});
  return t;
}

constexpr double kTolerance = 1e-5;

Handle& handle() {
  static Handle h(0);
  return h;
}

// ---- matrix products -------------------------------------------------------------------------

TEST(matmul_scales_and_accumulates) {
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5}), c = at::randn({3, 5});
  DeviceTensor l(a), r(b), out(c.clone());
  MatMul op;
  op.SetAlpha(2);
  op.SetBeta(0.5);
  CHECK_OK(op.Run(handle(), out, l, r));
  CHECK_CLOSE(out.read(), at::addmm(c, a, b, 0.5, 2), kTolerance);
}

TEST(matmul_reads_transposed_storage) {
  const at::Tensor a = at::randn({4, 3}), b = at::randn({5, 4});
  DeviceTensor l(a), r(b), out(at::zeros({3, 5}));
  MatMul op;
  op.SetTranspose(true, true);
  CHECK_OK(op.Run(handle(), out, l, r));
  CHECK_CLOSE(out.read(), at::mm(a.t(), b.t()), kTolerance);
}

TEST(matmul_adds_bias) {
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5}), bias = at::randn({5});
  const at::Tensor c = at::randn({3, 5});
  DeviceTensor l(a), r(b), v(bias), addend(c), out(at::zeros({3, 5}));
  MatMul op;
  op.SetGamma(3);
  CHECK_OK(op.RunWithBiasAdd(handle(), out, l, r, v));
  CHECK_CLOSE(out.read(), at::mm(a, b) + 3 * bias, kTolerance);
  op.SetBeta(2);
  CHECK_OK(op.RunWithBiasAdd(handle(), out, l, r, addend, v));
  CHECK_CLOSE(out.read(), at::mm(a, b) + 2 * c + 3 * bias, kTolerance);
}

TEST(matmul_with_beta_0_does_not_read_out) {
  const at::Tensor a = at::randn({2, 2});
  DeviceTensor l(a), r(a), out(at::full({2, 2}, NAN));
  CHECK_OK(MatMul().Run(handle(), out, l, r));
  CHECK_CLOSE(out.read(), at::mm(a, a), kTolerance);
}

TEST(matmul_scaled) {
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5});
  DeviceTensor l(a), r(b), out(at::zeros({3, 5})), two(at::full({1}, 2.f)),
      half(at::full({1}, 0.5f));
  DeviceTensor amax(at::zeros({1}));
  MatMulLtParam param;
  param.SetScale(two, two, Tensor(), half);
  param.SetAmaxD(amax);
  CHECK_OK(MatMul().RunLt(handle(), out, l, r, Tensor(), Tensor(), param));
  CHECK_CLOSE(out.read(), at::mm(a, b) * 2, kTolerance);
  CHECK_CLOSE(amax.read(), (at::mm(a, b) * 4).abs().max().view({1}), kTolerance);
}

TEST(matmul_refuses_double) {
  DeviceTensor a(at::randn({2, 2}, at::kDouble)), out(at::zeros({2, 2}, at::kDouble));
  CHECK_STATUS(MatMul().Run(handle(), out, a, a), NOT_SUPPORTED);
}

TEST(matmul_refuses_integers) {
  DeviceTensor a(at::ones({2, 2}, at::kInt)), out(at::zeros({2, 2}, at::kInt));
  CHECK_STATUS(MatMul().Run(handle(), out, a, a), NOT_SUPPORTED);
}

// is_contiguous() holds for it, yet its leading dimension is 1.
TEST(matmul_refuses_leftover_stride_of_transposed_column) {
  const at::Tensor column = at::randn({4, 1}).t();
  CHECK(column.is_contiguous() && column.stride(0) == 1);
  DeviceTensor l(column), r(at::randn({4, 5})), out(at::zeros({1, 5}));
  CHECK_STATUS(MatMul().Run(handle(), out, l, r), INVALID_PARAMETER);
}

TEST(matmul_refuses_gaps) {
  DeviceTensor l(at::randn({3, 8}).slice(1, 0, 4)), r(at::randn({4, 5})), out(at::zeros({3, 5}));
  CHECK_STATUS(MatMul().Run(handle(), out, l, r), INVALID_PARAMETER);
}

TEST(matmul_refuses_shapes_that_do_not_multiply) {
  DeviceTensor a(at::randn({3, 4})), out(at::zeros({3, 4}));
  CHECK_STATUS(MatMul().Run(handle(), out, a, a), INVALID_PARAMETER);
}

TEST(matmul_refuses_an_empty_sum) {
  DeviceTensor l(at::randn({3, 0})), r(at::randn({0, 5})), out(at::zeros({3, 5}));
  CHECK_STATUS(MatMul().Run(handle(), out, l, r), NOT_SUPPORTED);
}

TEST(batch_matmul) {
  const at::Tensor a = at::randn({2, 3, 4}), b = at::randn({2, 5, 4}), c = at::randn({2, 3, 5});
  DeviceTensor l(a), r(b), out(c.clone());
  BatchMatMul op;
  op.SetTranspose(false, true);
  op.SetBeta(1);
  CHECK_OK(op.Run(handle(), out, l, r));
  CHECK_CLOSE(out.read(), at::baddbmm(c, a, b.transpose(1, 2)), kTolerance);
  DeviceTensor matrix(at::randn({3, 4}));
  CHECK_STATUS(op.Run(handle(), out, matrix, r), INVALID_PARAMETER);
}

TEST(dot) {
  const at::Tensor a = at::randn({7}), b = at::randn({7});
  DeviceTensor l(a), r(b), out(at::zeros({1}));
  CHECK_OK(Dot().Run(handle(), out, l, r));
  CHECK_CLOSE(out.read(), at::dot(a, b).view({1}), kTolerance);
  DeviceTensor d(a.to(at::kDouble)), dout(at::zeros({1}, at::kDouble));
  CHECK_STATUS(Dot().Run(handle(), dout, d, d), NOT_SUPPORTED);
}

// ---- convolution -----------------------------------------------------------------------------

Convolution convolution(int pad, int stride, int groups) {
  Convolution op;
  op.SetNdInfo({pad, pad}, {stride, stride}, {1, 1});
  op.SetGroups(groups);
  return op;
}

TEST(convolution_forward_and_gradients) {
  const at::Tensor x = at::randn({2, 3, 7, 6}), w = at::randn({4, 3, 3, 3});
  const at::Tensor y = at::conv2d(x, w, {}, 2, 1), dy = at::randn_like(y);
  const auto [dx, dw, db] = at::convolution_backward(dy, x, w, std::nullopt, {2, 2}, {1, 1}, {1, 1},
                                                     false, {0, 0}, 1, {true, true, false});
  DeviceTensor in(x), filter(w), out(at::zeros_like(y)), grad(dy);
  DeviceTensor grad_in(at::zeros_like(x)), grad_filter(at::zeros_like(w));
  const Convolution op = convolution(1, 2, 1);
  CHECK_OK(op.Run(handle(), out, in, filter, Convolution::Algorithm::IMPLICIT_GEMM, nullptr));
  CHECK_OK(
      op.RunBwdData(handle(), grad_in, grad, filter, Convolution::AlgorithmBwdData::GEMM, nullptr));
  CHECK_OK(op.RunBwdFilter(handle(), grad_filter, in, grad, Convolution::AlgorithmBwdFilter::DIRECT,
                           nullptr));
  CHECK_CLOSE(out.read(), y, kTolerance);
  CHECK_CLOSE(grad_in.read(), dx, kTolerance);
  CHECK_CLOSE(grad_filter.read(), dw, kTolerance);
}

TEST(convolution_of_channels_last_memory) {
  const auto cl = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = at::randn({2, 3, 5, 6}).contiguous(cl), w = at::randn({4, 3, 3, 3});
  const at::Tensor y = at::conv2d(x, w);
  DeviceTensor in(x), filter(w.contiguous(cl)), out(at::zeros(y.sizes()).contiguous(cl));
  CHECK_OK(convolution(0, 1, 1).Run(handle(), nhwc(out, y), nhwc(in, x), nhwc(filter, w),
                                    Convolution::Algorithm::WINOGRAD_NONFUSED, nullptr));
  CHECK_CLOSE(out.read(), y, kTolerance);
}

TEST(convolution_fuses_bias_addend_and_activation) {
  const at::Tensor x = at::randn({2, 3, 5, 5}), w = at::randn({4, 3, 3, 3}), b = at::randn({4});
  const at::Tensor y = at::conv2d(x, w, b), z = at::randn_like(y);
  DeviceTensor in(x), filter(w), bias(b), add(z), out(at::zeros_like(y));
  Convolution::FusedActivationDesc act;
  act.SetMode(Convolution::FusedActivationDesc::Mode::RELU);
  CHECK_OK(convolution(0, 1, 1).RunFusion(handle(), out, in, filter, bias, add, act,
                                          Convolution::Algorithm::IMPLICIT_GEMM, nullptr));
  CHECK_CLOSE(out.read(), at::relu(y + z), kTolerance);
}

TEST(convolution_recommends_for_groups_what_it_refuses) {
  const at::Tensor x = at::randn({1, 4, 5, 5}), w = at::randn({4, 2, 3, 3}), b = at::randn({4});
  DeviceTensor in(x), filter(w), bias(b), out(at::zeros({1, 4, 3, 3}));
  const Convolution op = convolution(0, 1, 2);
  auto algo = Convolution::Algorithm::GEMM;
  CHECK_OK(op.GetRecommendForwardAlgorithm(handle(), algo, out, in, filter));
  CHECK(algo == Convolution::Algorithm::DIRECT);
  CHECK_STATUS(op.Run(handle(), out, in, filter, algo, nullptr), NOT_SUPPORTED);
  CHECK_OK(op.Run(handle(), out, in, filter, Convolution::Algorithm::IMPLICIT_GEMM, nullptr));
  CHECK_CLOSE(out.read(), at::conv2d(x, w, {}, {1, 1}, at::IntArrayRef({0, 0}), {1, 1}, 2),
              kTolerance);
  CHECK_STATUS(op.RunFusion(handle(), out, in, filter, bias, Tensor(), {},
                            Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
               NOT_SUPPORTED);
}

TEST(convolution_has_two_spatial_dimensions) {
  DeviceTensor in(at::randn({1, 2, 5})), filter(at::randn({3, 2, 3})), out(at::zeros({1, 3, 3}));
  CHECK_STATUS(convolution(0, 1, 1).Run(handle(), out, in, filter,
                                        Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
               NOT_SUPPORTED);
}

TEST(convolution_checks_sizes) {
  DeviceTensor in(at::randn({1, 2, 5, 5})), filter(at::randn({3, 2, 3, 3}));
  DeviceTensor out(at::zeros({1, 3, 4, 4}));
  CHECK_STATUS(convolution(0, 1, 1).Run(handle(), out, in, filter,
                                        Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
               INVALID_PARAMETER);
}

// ---- pooling ---------------------------------------------------------------------------------

TEST(max_pooling) {
  const at::Tensor x = at::randn({2, 3, 7, 7});
  // ceil_mode is not a parameter: the library sees it in the size of the output.
  const auto [y, where] = at::max_pool2d_with_indices(x, 2, 2, 0, 1, /*ceil_mode=*/true);
  const at::Tensor dy = at::randn_like(y);
  DeviceTensor in(x), out(at::zeros_like(y)), indices(at::zeros_like(where)), grad(dy);
  DeviceTensor grad_in(at::zeros_like(x));
  Pooling op;
  op.SetMode(Pooling::Mode::MAXPOOL);
  op.SetNdInfo({2, 2}, {0, 0}, {2, 2}, {1, 1});
  CHECK_OK(op.Run(handle(), out, in, indices));
  CHECK_OK(op.RunBwd(handle(), grad_in, grad, indices));
  CHECK_CLOSE(out.read(), y, kTolerance);
  CHECK(indices.read().equal(where));
  CHECK_CLOSE(grad_in.read(), at::max_pool2d_with_indices_backward(dy, x, 2, 2, 0, 1, true, where),
              kTolerance);
  Tensor none;
  CHECK_STATUS(op.Run(handle(), out, in, none), INVALID_PARAMETER);
}

TEST(average_pooling) {
  const at::Tensor x = at::randn({2, 3, 6, 6});
  DeviceTensor in(x), out(at::zeros({2, 3, 4, 4}));
  Tensor none;
  Pooling op;
  op.SetMode(Pooling::Mode::AVGPOOL_COUNT_WITHOUT_PAD);
  op.SetNdInfo({2, 2}, {1, 1}, {2, 2}, {1, 1});
  CHECK_OK(op.Run(handle(), out, in, none));
  CHECK_CLOSE(out.read(), at::avg_pool2d(x, 2, 2, 1, false, false), kTolerance);
  op.SetMode(Pooling::Mode::AVGPOOL_COUNT_PAD);
  op.SetDivisor(3);
  CHECK_OK(op.Run(handle(), out, in, none));
  CHECK_CLOSE(out.read(), at::avg_pool2d(x, 2, 2, 1, false, true, 3), kTolerance);
}

TEST(adaptive_pooling) {
  const at::Tensor x = at::randn({2, 3, 6, 5});
  DeviceTensor in(x), out(at::zeros({2, 3, 2, 3})), indices(at::zeros({2, 3, 2, 3}, at::kLong));
  Pooling op;
  op.SetMode(Pooling::Mode::ADAPTIVE_MAXPOOL);
  CHECK_OK(op.Run(handle(), out, in, indices));
  CHECK_CLOSE(out.read(), std::get<0>(at::adaptive_max_pool2d(x, {2, 3})), kTolerance);
  Tensor none;
  op.SetMode(Pooling::Mode::ADAPTIVE_AVGPOOL);
  CHECK_OK(op.Run(handle(), out, in, none));
  CHECK_CLOSE(out.read(), at::adaptive_avg_pool2d(x, {2, 3}), kTolerance);
}

// ---- normalization ---------------------------------------------------------------------------

TEST(batch_norm_in_training_and_evaluation) {
  const at::Tensor x = at::randn({4, 3, 5, 5}), w = at::randn({3}), b = at::randn({3});
  const at::Tensor rm = at::randn({3}), rv = at::rand({3}) + 0.5;
  DeviceTensor in(x), out(at::zeros_like(x)), weight(w), bias(b), running_mean(rm.clone());
  DeviceTensor running_var(rv.clone()), mean(at::zeros({3})), invstd(at::zeros({3}));
  BatchNorm op;
  op.SetMode(BatchNorm::Mode::PER_CHANNEL);
  op.SetEpsilon(1e-3);
  CHECK_OK(op.RunPure(handle(), out, in, running_mean, running_var, weight, bias));
  CHECK_CLOSE(out.read(), at::batch_norm(x, w, b, rm, rv, false, 0.1, 1e-3, false), kTolerance);

  op.SetTraining(true);
  CHECK_OK(op.RunComposite(handle(), out, in, running_mean, running_var, mean, invstd, weight, bias,
                           0.1, nullptr));
  const auto [y, save_mean, save_invstd] = at::native_batch_norm(x, w, b, rm, rv, true, 0.1, 1e-3);
  CHECK_CLOSE(out.read(), y, kTolerance);
  CHECK_CLOSE(mean.read(), save_mean, kTolerance);
  CHECK_CLOSE(invstd.read(), save_invstd, kTolerance);
  CHECK_CLOSE(running_mean.read(), rm, kTolerance);
  CHECK_CLOSE(running_var.read(), rv, kTolerance);
}

TEST(batch_norm_gradients) {
  const at::Tensor x = at::randn({4, 3, 5, 5}), dy = at::randn({4, 3, 5, 5}), w = at::randn({3});
  const at::Tensor m = x.mean({0, 2, 3}), v = x.var({0, 2, 3}, false), s = at::rsqrt(v + 1e-5);
  const auto [dx, dw, db] =
      at::native_batch_norm_backward(dy, x, w, {}, {}, m, s, true, 1e-5, {true, true, true});
  DeviceTensor in(x), grad(dy), weight(w), mean(m), invstd(s), grad_in(at::zeros_like(x));
  DeviceTensor dgamma(at::zeros({3})), dbeta(at::zeros({3})), dmean(at::zeros({3}));
  DeviceTensor dvar(at::zeros({3}));
  BatchNorm op;
  op.SetMode(BatchNorm::Mode::PER_CHANNEL);
  op.SetTraining(true);
  CHECK_OK(op.RunBwd(handle(), grad_in, dmean, dvar, dgamma, dbeta, in, grad, mean, invstd, weight,
                     nullptr));
  CHECK_CLOSE(grad_in.read(), dx, kTolerance);
  CHECK_CLOSE(dgamma.read(), dw, kTolerance);
  CHECK_CLOSE(dbeta.read(), db, kTolerance);
  CHECK_CLOSE(dmean.read(), -w * s * dy.sum(at::IntArrayRef{0, 2, 3}), kTolerance);
  CHECK_CLOSE(dvar.read(), -0.5 * w * s * s * dw, kTolerance);
}

TEST(layer_norm) {
  const at::Tensor x = at::randn({4, 6}), w = at::randn({6}), b = at::randn({6});
  const at::Tensor dy = at::randn({4, 6});
  const auto [y, m, r] = at::native_layer_norm(x, {6}, w, b, 1e-5);
  const auto [dx, dw, db] =
      at::native_layer_norm_backward(dy, x, {6}, m, r, w, b, {true, true, true});
  DeviceTensor in(x), weight(w), bias(b), out(at::zeros_like(x)), mean(at::zeros({4}));
  DeviceTensor rstd(at::zeros({4})), grad(dy), grad_in(at::zeros_like(x)), dgamma(at::zeros({6}));
  DeviceTensor dbeta(at::zeros({6}));
  const int axis = 1;
  LayerNorm op;
  op.SetAxis(1, &axis);
  CHECK_OK(op.Run(handle(), out, mean, rstd, in, weight, bias, nullptr));
  CHECK_OK(op.RunBwd(handle(), grad_in, dgamma, dbeta, grad, in, mean, rstd, weight, nullptr));
  CHECK_CLOSE(out.read(), y, kTolerance);
  CHECK_CLOSE(mean.read(), m.view({4}), kTolerance);
  CHECK_CLOSE(rstd.read(), r.view({4}), kTolerance);
  CHECK_CLOSE(grad_in.read(), dx, kTolerance);
  CHECK_CLOSE(dgamma.read(), dw, kTolerance);
  CHECK_CLOSE(dbeta.read(), db, kTolerance);
  CHECK_STATUS(op.Run(handle(), out, mean, rstd, in, weight, Tensor(), nullptr), NOT_SUPPORTED);
}

TEST(group_norm) {
  const at::Tensor x = at::randn({2, 4, 3, 5}), w = at::randn({4}), b = at::randn({4});
  DeviceTensor in(x), weight(w), bias(b), out(at::zeros_like(x)), mean(at::zeros({2, 2}));
  DeviceTensor rstd(at::zeros({2, 2}));
  GroupNorm op;
  op.SetGroup(2);
  CHECK_OK(op.Run(handle(), out, mean, rstd, in, weight, bias));
  // Layer normalization of every group, in double.
  const at::Tensor groups = x.to(at::kDouble).view({2, 2, 30});
  const at::Tensor m = groups.mean(-1), r = at::rsqrt(groups.var(-1, false) + 1e-5);
  const at::Tensor normal = (groups - m.unsqueeze(-1)) * r.unsqueeze(-1);
  CHECK_CLOSE(mean.read(), m, kTolerance);
  CHECK_CLOSE(rstd.read(), r, kTolerance);
  CHECK_CLOSE(out.read(), normal.view_as(x) * w.view({4, 1, 1}) + b.view({4, 1, 1}), kTolerance);
  op.SetGroup(3);
  CHECK_STATUS(op.Run(handle(), out, mean, rstd, in, weight, bias), INVALID_PARAMETER);
}

// ---- all classes -----------------------------------------------------------------------------

TEST(empty_operands_are_refused) {
  DeviceTensor empty(at::zeros({0, 3, 4, 4})), v(at::ones({3}));
  CHECK_STATUS(BatchNorm().RunPure(handle(), empty, empty, v, v, Tensor(), Tensor()),
               NOT_SUPPORTED);
  Tensor none;
  Pooling pool;
  pool.SetMode(Pooling::Mode::ADAPTIVE_AVGPOOL);
  CHECK_STATUS(pool.Run(handle(), empty, empty, none), NOT_SUPPORTED);
}

}  // namespace
