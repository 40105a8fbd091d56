// muDNN's matrix, convolution, pooling, normalization, loss and dropout classes: what they compute,
// against ATen on the CPU, and what they refuse.
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/allclose.h>
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
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <mudnn.h>
#include <musa_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "check.h"

namespace {

using namespace musa::dnn;
using Format = Tensor::Format;

Tensor::Type type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return Tensor::Type::HALF;
    case at::kBFloat16:
      return Tensor::Type::BFLOAT16;
    case at::kDouble:
      return Tensor::Type::DOUBLE;
    case at::kLong:
      return Tensor::Type::INT64;
    case at::kInt:
      return Tensor::Type::INT32;
    case at::kBool:
      return Tensor::Type::BOOL;
    default:
      return Tensor::Type::FLOAT;
  }
}

// Device memory holding a copy of a CPU tensor, storage order included.
class OnDevice {
 public:
  explicit OnDevice(const at::Tensor& host) : host_(host) {
    musaMalloc(&memory_, std::max<size_t>(bytes(), 1));
    musaMemcpy(memory_, host_.data_ptr(), bytes(), musaMemcpyHostToDevice);
    descriptor_.SetType(type_of(host_.scalar_type()));
    descriptor_.SetAddr(memory_);
    std::vector<int64_t> dims = host_.sizes().vec(), strides = host_.strides().vec();
    if (dims.empty()) dims = strides = {1};
    descriptor_.SetNdInfo(static_cast<int>(dims.size()), dims.data(), strides.data());
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { musaFree(memory_); }

  Tensor& tensor() { return descriptor_; }

  // Described as NHWC: the memory must lie so.
  OnDevice& nhwc() {
    descriptor_.SetFormat(Format::NHWC);
    descriptor_.SetNdInfo({host_.size(0), host_.size(2), host_.size(3), host_.size(1)});
    return *this;
  }

  at::Tensor value() {
    musaDeviceSynchronize();
    musaMemcpy(host_.data_ptr(), memory_, bytes(), musaMemcpyDeviceToHost);
    return host_;
  }

 private:
  size_t bytes() const { return host_.storage().nbytes(); }

  at::Tensor host_;
  void* memory_ = nullptr;
  Tensor descriptor_;
};

bool close(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-5, 1e-5); }

Handle& handle() {
  static Handle h(0);
  return h;
}

// ---- matrix products -------------------------------------------------------------------------

TEST(matmul_scales_and_accumulates) {
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5}), c = at::randn({3, 5});
  OnDevice l(a), r(b), out(c.clone());
  MatMul op;
  op.SetAlpha(2);
  op.SetBeta(0.5);
  CHECK_EQ(op.Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), at::addmm(c, a, b, 0.5, 2)));
}

TEST(matmul_reads_transposed_storage) {
  const at::Tensor a = at::randn({4, 3}), b = at::randn({5, 4});
  OnDevice l(a), r(b), out(at::zeros({3, 5}));
  MatMul op;
  op.SetTranspose(true, true);
  CHECK_EQ(op.Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), at::mm(a.t(), b.t())));
}

TEST(matmul_adds_bias) {
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5}), bias = at::randn({5});
  const at::Tensor c = at::randn({3, 5});
  OnDevice l(a), r(b), v(bias), addend(c), out(at::zeros({3, 5}));
  MatMul op;
  op.SetGamma(3);
  CHECK_EQ(op.RunWithBiasAdd(handle(), out.tensor(), l.tensor(), r.tensor(), v.tensor()),
           Status::SUCCESS);
  CHECK(close(out.value(), at::mm(a, b) + 3 * bias));
  op.SetBeta(2);
  CHECK_EQ(op.RunWithBiasAdd(handle(), out.tensor(), l.tensor(), r.tensor(), addend.tensor(),
                             v.tensor()),
           Status::SUCCESS);
  CHECK(close(out.value(), at::mm(a, b) + 2 * c + 3 * bias));
}

TEST(matmul_with_beta_0_does_not_read_out) {
  const at::Tensor a = at::randn({2, 2});
  OnDevice l(a), r(a), out(at::full({2, 2}, NAN));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), at::mm(a, a)));
}

TEST(matmul_scaled) {
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5});
  OnDevice l(a), r(b), out(at::zeros({3, 5})), two(at::full({1}, 2.f)), half(at::full({1}, 0.5f));
  OnDevice amax(at::zeros({1}));
  MatMulLtParam param;
  param.SetScale(two.tensor(), two.tensor(), Tensor(), half.tensor());
  param.SetAmaxD(amax.tensor());
  CHECK_EQ(
      MatMul().RunLt(handle(), out.tensor(), l.tensor(), r.tensor(), Tensor(), Tensor(), param),
      Status::SUCCESS);
  CHECK(close(out.value(), at::mm(a, b) * 2));
  CHECK(close(amax.value(), (at::mm(a, b) * 4).abs().max().view({1})));
}

TEST(matmul_refuses_double) {
  OnDevice a(at::randn({2, 2}, at::kDouble)), out(at::zeros({2, 2}, at::kDouble));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), a.tensor(), a.tensor()), Status::NOT_SUPPORTED);
}

TEST(matmul_refuses_integers) {
  OnDevice a(at::ones({2, 2}, at::kInt)), out(at::zeros({2, 2}, at::kInt));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), a.tensor(), a.tensor()), Status::NOT_SUPPORTED);
}

// is_contiguous() holds for it, yet its leading dimension is 1.
TEST(matmul_refuses_leftover_stride_of_transposed_column) {
  const at::Tensor column = at::randn({4, 1}).t();
  CHECK(column.is_contiguous() && column.stride(0) == 1);
  OnDevice l(column), r(at::randn({4, 5})), out(at::zeros({1, 5}));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::INVALID_PARAMETER);
}

TEST(matmul_refuses_gaps) {
  OnDevice l(at::randn({3, 8}).slice(1, 0, 4)), r(at::randn({4, 5})), out(at::zeros({3, 5}));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::INVALID_PARAMETER);
}

TEST(matmul_refuses_shapes_that_do_not_multiply) {
  OnDevice a(at::randn({3, 4})), out(at::zeros({3, 4}));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), a.tensor(), a.tensor()), Status::INVALID_PARAMETER);
}

TEST(matmul_refuses_an_empty_sum) {
  OnDevice l(at::randn({3, 0})), r(at::randn({0, 5})), out(at::zeros({3, 5}));
  CHECK_EQ(MatMul().Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::NOT_SUPPORTED);
}

TEST(batch_matmul) {
  const at::Tensor a = at::randn({2, 3, 4}), b = at::randn({2, 5, 4}), c = at::randn({2, 3, 5});
  OnDevice l(a), r(b), out(c.clone());
  BatchMatMul op;
  op.SetTranspose(false, true);
  op.SetBeta(1);
  CHECK_EQ(op.Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), at::baddbmm(c, a, b.transpose(1, 2))));
  OnDevice matrix(at::randn({3, 4}));
  CHECK_EQ(op.Run(handle(), out.tensor(), matrix.tensor(), r.tensor()), Status::INVALID_PARAMETER);
}

TEST(dot) {
  const at::Tensor a = at::randn({7}), b = at::randn({7});
  OnDevice l(a), r(b), out(at::zeros({}));
  CHECK_EQ(Dot().Run(handle(), out.tensor(), l.tensor(), r.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), at::dot(a, b)));
  OnDevice d(a.to(at::kDouble)), dout(at::zeros({}, at::kDouble));
  CHECK_EQ(Dot().Run(handle(), dout.tensor(), d.tensor(), d.tensor()), Status::NOT_SUPPORTED);
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
  OnDevice in(x), filter(w), out(at::zeros_like(y)), grad(dy);
  OnDevice grad_in(at::zeros_like(x)), grad_filter(at::zeros_like(w));
  const Convolution op = convolution(1, 2, 1);
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), filter.tensor(),
                  Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
           Status::SUCCESS);
  CHECK_EQ(op.RunBwdData(handle(), grad_in.tensor(), grad.tensor(), filter.tensor(),
                         Convolution::AlgorithmBwdData::GEMM, nullptr),
           Status::SUCCESS);
  CHECK_EQ(op.RunBwdFilter(handle(), grad_filter.tensor(), in.tensor(), grad.tensor(),
                           Convolution::AlgorithmBwdFilter::DIRECT, nullptr),
           Status::SUCCESS);
  CHECK(close(out.value(), y));
  CHECK(close(grad_in.value(), dx));
  CHECK(close(grad_filter.value(), dw));
}

TEST(convolution_of_channels_last_memory) {
  const auto cl = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = at::randn({2, 3, 5, 6}).contiguous(cl), w = at::randn({4, 3, 3, 3});
  const at::Tensor y = at::conv2d(x, w);
  OnDevice in(x), filter(w.contiguous(cl)), out(at::zeros(y.sizes()).contiguous(cl));
  CHECK_EQ(convolution(0, 1, 1).Run(handle(), out.nhwc().tensor(), in.nhwc().tensor(),
                                    filter.nhwc().tensor(),
                                    Convolution::Algorithm::WINOGRAD_NONFUSED, nullptr),
           Status::SUCCESS);
  CHECK(close(out.value(), y));
}

TEST(convolution_fuses_bias_addend_and_activation) {
  const at::Tensor x = at::randn({2, 3, 5, 5}), w = at::randn({4, 3, 3, 3}), b = at::randn({4});
  const at::Tensor y = at::conv2d(x, w, b), z = at::randn_like(y);
  OnDevice in(x), filter(w), bias(b), add(z), out(at::zeros_like(y));
  Convolution::FusedActivationDesc act;
  act.SetMode(Convolution::FusedActivationDesc::Mode::RELU);
  CHECK_EQ(convolution(0, 1, 1).RunFusion(handle(), out.tensor(), in.tensor(), filter.tensor(),
                                          bias.tensor(), add.tensor(), act,
                                          Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
           Status::SUCCESS);
  CHECK(close(out.value(), at::relu(y + z)));
}

TEST(convolution_recommends_for_groups_what_it_refuses) {
  const at::Tensor x = at::randn({1, 4, 5, 5}), w = at::randn({4, 2, 3, 3}), b = at::randn({4});
  OnDevice in(x), filter(w), bias(b), out(at::zeros({1, 4, 3, 3}));
  const Convolution op = convolution(0, 1, 2);
  auto algo = Convolution::Algorithm::GEMM;
  CHECK_EQ(
      op.GetRecommendForwardAlgorithm(handle(), algo, out.tensor(), in.tensor(), filter.tensor()),
      Status::SUCCESS);
  CHECK(algo == Convolution::Algorithm::DIRECT);
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), filter.tensor(), algo, nullptr),
           Status::NOT_SUPPORTED);
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), filter.tensor(),
                  Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
           Status::SUCCESS);
  CHECK(close(out.value(), at::conv2d(x, w, {}, {1, 1}, at::IntArrayRef({0, 0}), {1, 1}, 2)));
  CHECK_EQ(op.RunFusion(handle(), out.tensor(), in.tensor(), filter.tensor(), bias.tensor(),
                        Tensor(), {}, Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
           Status::NOT_SUPPORTED);
}

TEST(convolution_has_two_spatial_dimensions) {
  OnDevice in(at::randn({1, 2, 5})), filter(at::randn({3, 2, 3})), out(at::zeros({1, 3, 3}));
  CHECK_EQ(convolution(0, 1, 1).Run(handle(), out.tensor(), in.tensor(), filter.tensor(),
                                    Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
           Status::NOT_SUPPORTED);
}

TEST(convolution_checks_sizes) {
  OnDevice in(at::randn({1, 2, 5, 5})), filter(at::randn({3, 2, 3, 3}));
  OnDevice out(at::zeros({1, 3, 4, 4}));
  CHECK_EQ(convolution(0, 1, 1).Run(handle(), out.tensor(), in.tensor(), filter.tensor(),
                                    Convolution::Algorithm::IMPLICIT_GEMM, nullptr),
           Status::INVALID_PARAMETER);
}

// ---- pooling ---------------------------------------------------------------------------------

TEST(max_pooling) {
  const at::Tensor x = at::randn({2, 3, 7, 7});
  // ceil_mode is not a parameter: the library sees it in the size of the output.
  const auto [y, where] = at::max_pool2d_with_indices(x, 2, 2, 0, 1, /*ceil_mode=*/true);
  const at::Tensor dy = at::randn_like(y);
  OnDevice in(x), out(at::zeros_like(y)), indices(at::zeros_like(where)), grad(dy);
  OnDevice grad_in(at::zeros_like(x));
  Pooling op;
  op.SetMode(Pooling::Mode::MAXPOOL);
  op.SetNdInfo({2, 2}, {0, 0}, {2, 2}, {1, 1});
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), indices.tensor()), Status::SUCCESS);
  CHECK_EQ(op.RunBwd(handle(), grad_in.tensor(), grad.tensor(), indices.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), y));
  CHECK(indices.value().equal(where));
  CHECK(
      close(grad_in.value(), at::max_pool2d_with_indices_backward(dy, x, 2, 2, 0, 1, true, where)));
  Tensor none;
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), none), Status::INVALID_PARAMETER);
}

TEST(average_pooling) {
  const at::Tensor x = at::randn({2, 3, 6, 6});
  OnDevice in(x), out(at::zeros({2, 3, 4, 4}));
  Tensor none;
  Pooling op;
  op.SetMode(Pooling::Mode::AVGPOOL_COUNT_WITHOUT_PAD);
  op.SetNdInfo({2, 2}, {1, 1}, {2, 2}, {1, 1});
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), none), Status::SUCCESS);
  CHECK(close(out.value(), at::avg_pool2d(x, 2, 2, 1, false, false)));
  op.SetMode(Pooling::Mode::AVGPOOL_COUNT_PAD);
  op.SetDivisor(3);
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), none), Status::SUCCESS);
  CHECK(close(out.value(), at::avg_pool2d(x, 2, 2, 1, false, true, 3)));
}

TEST(adaptive_pooling) {
  const at::Tensor x = at::randn({2, 3, 6, 5});
  OnDevice in(x), out(at::zeros({2, 3, 2, 3})), indices(at::zeros({2, 3, 2, 3}, at::kLong));
  Pooling op;
  op.SetMode(Pooling::Mode::ADAPTIVE_MAXPOOL);
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), indices.tensor()), Status::SUCCESS);
  CHECK(close(out.value(), std::get<0>(at::adaptive_max_pool2d(x, {2, 3}))));
  Tensor none;
  op.SetMode(Pooling::Mode::ADAPTIVE_AVGPOOL);
  CHECK_EQ(op.Run(handle(), out.tensor(), in.tensor(), none), Status::SUCCESS);
  CHECK(close(out.value(), at::adaptive_avg_pool2d(x, {2, 3})));
}

// ---- normalization ---------------------------------------------------------------------------

TEST(batch_norm_in_training_and_evaluation) {
  const at::Tensor x = at::randn({4, 3, 5, 5}), w = at::randn({3}), b = at::randn({3});
  const at::Tensor rm = at::randn({3}), rv = at::rand({3}) + 0.5;
  OnDevice in(x), out(at::zeros_like(x)), weight(w), bias(b), running_mean(rm.clone());
  OnDevice running_var(rv.clone()), mean(at::zeros({3})), invstd(at::zeros({3}));
  BatchNorm op;
  op.SetEpsilon(1e-3);
  CHECK_EQ(op.RunPure(handle(), out.tensor(), in.tensor(), running_mean.tensor(),
                      running_var.tensor(), weight.tensor(), bias.tensor()),
           Status::SUCCESS);
  CHECK(close(out.value(), at::batch_norm(x, w, b, rm, rv, false, 0.1, 1e-3, false)));

  op.SetTraining(true);
  CHECK_EQ(op.RunComposite(handle(), out.tensor(), in.tensor(), running_mean.tensor(),
                           running_var.tensor(), mean.tensor(), invstd.tensor(), weight.tensor(),
                           bias.tensor(), 0.1, nullptr),
           Status::SUCCESS);
  const auto [y, save_mean, save_invstd] = at::native_batch_norm(x, w, b, rm, rv, true, 0.1, 1e-3);
  CHECK(close(out.value(), y));
  CHECK(close(mean.value(), save_mean));
  CHECK(close(invstd.value(), save_invstd));
  CHECK(close(running_mean.value(), rm));
  CHECK(close(running_var.value(), rv));
}

TEST(batch_norm_gradients) {
  const at::Tensor x = at::randn({4, 3, 5, 5}), dy = at::randn({4, 3, 5, 5}), w = at::randn({3});
  const at::Tensor m = x.mean({0, 2, 3}), v = x.var({0, 2, 3}, false), s = at::rsqrt(v + 1e-5);
  const auto [dx, dw, db] =
      at::native_batch_norm_backward(dy, x, w, {}, {}, m, s, true, 1e-5, {true, true, true});
  OnDevice in(x), grad(dy), weight(w), mean(m), invstd(s), grad_in(at::zeros_like(x));
  OnDevice dgamma(at::zeros({3})), dbeta(at::zeros({3})), dmean(at::zeros({3}));
  OnDevice dvar(at::zeros({3}));
  BatchNorm op;
  op.SetTraining(true);
  CHECK_EQ(op.RunBwd(handle(), grad_in.tensor(), dmean.tensor(), dvar.tensor(), dgamma.tensor(),
                     dbeta.tensor(), in.tensor(), grad.tensor(), mean.tensor(), invstd.tensor(),
                     weight.tensor(), nullptr),
           Status::SUCCESS);
  CHECK(close(grad_in.value(), dx));
  CHECK(close(dgamma.value(), dw));
  CHECK(close(dbeta.value(), db));
  CHECK(close(dmean.value(), -w * s * dy.sum(at::IntArrayRef{0, 2, 3})));
  CHECK(close(dvar.value(), -0.5 * w * s * s * dw));
}

TEST(layer_norm) {
  const at::Tensor x = at::randn({4, 6}), w = at::randn({6}), b = at::randn({6});
  const at::Tensor dy = at::randn({4, 6});
  const auto [y, m, r] = at::native_layer_norm(x, {6}, w, b, 1e-5);
  const auto [dx, dw, db] =
      at::native_layer_norm_backward(dy, x, {6}, m, r, w, b, {true, true, true});
  OnDevice in(x), weight(w), bias(b), out(at::zeros_like(x)), mean(at::zeros({4}));
  OnDevice rstd(at::zeros({4})), grad(dy), grad_in(at::zeros_like(x)), dgamma(at::zeros({6}));
  OnDevice dbeta(at::zeros({6}));
  const int axis = 1;
  LayerNorm op;
  op.SetAxis(1, &axis);
  CHECK_EQ(op.Run(handle(), out.tensor(), mean.tensor(), rstd.tensor(), in.tensor(),
                  weight.tensor(), bias.tensor(), nullptr),
           Status::SUCCESS);
  CHECK_EQ(op.RunBwd(handle(), grad_in.tensor(), dgamma.tensor(), dbeta.tensor(), grad.tensor(),
                     in.tensor(), mean.tensor(), rstd.tensor(), weight.tensor(), nullptr),
           Status::SUCCESS);
  CHECK(close(out.value(), y));
  CHECK(close(mean.value(), m.view({4})));
  CHECK(close(rstd.value(), r.view({4})));
  CHECK(close(grad_in.value(), dx));
  CHECK(close(dgamma.value(), dw));
  CHECK(close(dbeta.value(), db));
  CHECK_EQ(op.Run(handle(), out.tensor(), mean.tensor(), rstd.tensor(), in.tensor(),
                  weight.tensor(), Tensor(), nullptr),
           Status::NOT_SUPPORTED);
}

// ---- losses and dropout ----------------------------------------------------------------------

TEST(nll_loss) {
  const at::Tensor x = at::randn({4, 5}), t = at::randint(0, 5, {4}, at::kLong);
  const at::Tensor w = at::rand({5});
  OnDevice in(x), target(t), weight(w), out(at::zeros({})), total(at::zeros({}));
  OnDevice grad(at::ones({})), grad_in(at::zeros_like(x));
  NLLLoss op;
  op.SetReductionMode(NLLLoss::Mode::MEAN);
  op.SetIgnoreIndex(2);
  CHECK_EQ(op.Run(handle(), out.tensor(), total.tensor(), in.tensor(), target.tensor(),
                  weight.tensor(), nullptr),
           Status::SUCCESS);
  const auto [loss, total_weight] = at::nll_loss_forward(x, t, w, at::Reduction::Mean, 2);
  CHECK(close(out.value(), loss));
  CHECK(close(total.value(), total_weight));
  CHECK_EQ(op.RunBwd(handle(), grad_in.tensor(), grad.tensor(), target.tensor(), weight.tensor(),
                     total.tensor(), nullptr),
           Status::SUCCESS);
  CHECK(close(grad_in.value(),
              at::nll_loss_backward(at::ones({}), x, t, w, at::Reduction::Mean, 2, total_weight)));
  OnDevice narrow(t.to(at::kInt));
  CHECK_EQ(op.Run(handle(), out.tensor(), total.tensor(), in.tensor(), narrow.tensor(),
                  weight.tensor(), nullptr),
           Status::NOT_SUPPORTED);
}

TEST(dropout_is_a_function_of_seed_and_offset) {
  const at::Tensor x = at::randn({10000});
  OnDevice in(x), out(at::zeros_like(x)), mask(at::zeros({10000}, at::kBool));
  Dropout op;
  CHECK_EQ(op.SetP(1), Status::INVALID_PARAMETER);
  op.SetP(0.25);
  op.SetSeed(7);
  const auto draw = [&](uint64_t offset) {
    op.SetOffset(offset);
    CHECK_EQ(op.RunDropout(handle(), out.tensor(), in.tensor(), mask.tensor()), Status::SUCCESS);
    return mask.value().clone();
  };
  const at::Tensor first = draw(0);
  const double kept = first.to(at::kDouble).mean().item<double>();
  CHECK(kept > 0.73 && kept < 0.77);
  CHECK(close(out.value(), x * first / 0.75));
  CHECK(!draw(4).equal(first));
  CHECK(draw(0).equal(first));

  OnDevice grad_in(at::zeros_like(x));
  op.SetScale(2);
  CHECK_EQ(op.RunDropoutBwd(handle(), grad_in.tensor(), in.tensor(), mask.tensor()),
           Status::SUCCESS);
  CHECK(close(grad_in.value(), x * first * 2));
}

TEST(empty_operands_are_refused) {
  OnDevice empty(at::zeros({0, 3, 4, 4})), v(at::ones({3}));
  CHECK_EQ(BatchNorm().RunPure(handle(), empty.tensor(), empty.tensor(), v.tensor(), v.tensor(),
                               Tensor(), Tensor()),
           Status::NOT_SUPPORTED);
  Tensor none;
  Pooling pool;
  pool.SetMode(Pooling::Mode::ADAPTIVE_AVGPOOL);
  CHECK_EQ(pool.Run(handle(), empty.tensor(), empty.tensor(), none), Status::NOT_SUPPORTED);
}

}  // namespace
