// muDNN's losses against ATen's and autograd's, and what they refuse.
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "blocking.h"
#include "device_tensor.h"

namespace {

using namespace musa::dnn;
using check::DeviceTensor;

constexpr double kTolerance = 1e-5;

Handle& handle() {
  static Handle h(0);
  return h;
}

at::Tensor leaf(const at::Tensor& t) { return t.detach().clone().requires_grad_(); }

TEST(nll_loss) {
  const at::Tensor x = at::randn({4, 5}), t = at::randint(0, 5, {4}, at::kLong);
  const at::Tensor w = at::rand({5});
  DeviceTensor in(x), target(t), weight(w), out(at::zeros({1})), total(at::zeros({1}));
  DeviceTensor grad(at::ones({1})), grad_in(at::zeros_like(x));
  NLLLoss op;
  op.SetReductionMode(NLLLoss::Mode::MEAN);
  op.SetIgnoreIndex(2);
  CHECK_OK(op.Run(handle(), out, total, in, target, weight, nullptr));
  const auto [loss, total_weight] = at::nll_loss_forward(x, t, w, at::Reduction::Mean, 2);
  CHECK_CLOSE(out.read(), loss.view({1}), kTolerance);
  CHECK_CLOSE(total.read(), total_weight.view({1}), kTolerance);
  CHECK_OK(op.RunBwd(handle(), grad_in, grad, target, weight, total, nullptr));
  CHECK_CLOSE(grad_in.read(),
              at::nll_loss_backward(at::ones({}), x, t, w, at::Reduction::Mean, 2, total_weight),
              kTolerance);
  DeviceTensor narrow(t.to(at::kInt));
  CHECK_STATUS(op.Run(handle(), out, total, in, narrow, weight, nullptr), NOT_SUPPORTED);
}

TEST(kl_div_loss_and_its_gradient) {
  const at::Tensor x = at::log_softmax(at::randn({4, 5}), 1), p = at::softmax(at::randn({4, 5}), 1);
  for (bool log_target : {false, true}) {
    const at::Tensor t = log_target ? p.log() : p;
    for (auto [mode, reduction] : {std::pair{KLDivLoss::Mode::NONE, at::Reduction::None},
                                   std::pair{KLDivLoss::Mode::MEAN, at::Reduction::Mean},
                                   std::pair{KLDivLoss::Mode::SUM, at::Reduction::Sum}}) {
      const bool none = mode == KLDivLoss::Mode::NONE;
      const at::Tensor l = leaf(x);
      const at::Tensor y = at::kl_div(l, t, reduction, log_target);
      const at::Tensor g = none ? at::randn({4, 5}) : at::randn({1});
      y.backward(none ? g : g.squeeze());
      DeviceTensor in(x), target(t), grad(g), out(at::zeros_like(g)), grad_in(at::zeros_like(x));
      KLDivLoss op;
      op.SetReductionMode(mode);
      op.SetLogTarget(log_target);
      CHECK_OK(op.Run(handle(), out, in, target, nullptr));
      CHECK_OK(op.RunBwd(handle(), grad_in, grad, in, target));
      CHECK_CLOSE(out.read(), y.detach().view_as(g), kTolerance);
      CHECK_CLOSE(grad_in.read(), l.grad(), kTolerance);
    }
  }
}

TEST(kl_div_loss_of_a_target_of_zero_is_zero) {
  DeviceTensor in(at::zeros({2, 3})), target(at::zeros({2, 3})), out(at::ones({2, 3}));
  KLDivLoss op;
  op.SetReductionMode(KLDivLoss::Mode::NONE);
  CHECK_OK(op.Run(handle(), out, in, target, nullptr));
  CHECK_CLOSE(out.read(), at::zeros({2, 3}), kTolerance);
}

TEST(cross_entropy_loss_and_its_gradient) {
  using Mode = CrossEntropyLoss::ReductionMode;
  const at::Tensor x = at::randn({6, 5}), w = at::rand({5}) + 0.5;
  const at::Tensor t = at::tensor({0, 4, 2, 2, 3, 1}, at::kLong);
  for (double smoothing : {0.0, 0.2}) {
    for (bool weighted : {false, true}) {
      for (auto [mode, reduction] :
           {std::pair{Mode::NONE, at::Reduction::None}, std::pair{Mode::MEAN, at::Reduction::Mean},
            std::pair{Mode::SUM, at::Reduction::Sum}}) {
        const at::Tensor l = leaf(x);
        const at::Tensor y = at::cross_entropy_loss(
            l, t, weighted ? std::optional<at::Tensor>(w) : std::nullopt, reduction, 2, smoothing);
        const at::Tensor g = mode == Mode::NONE ? at::randn({6}) : at::randn({1});
        y.backward(mode == Mode::NONE ? g : g.squeeze());
        DeviceTensor in(x), target(t), weight(w), grad(g), out(at::zeros_like(g));
        DeviceTensor grad_in(at::zeros_like(x));
        CrossEntropyLoss op;
        op.SetReductionMode(mode);
        op.SetIgnoreIndex(2);
        op.SetLabelSmoothing(smoothing);
        Tensor none;
        const Tensor& chosen = weighted ? weight.desc : none;
        CHECK_OK(op.Run(handle(), out, in, target, chosen, nullptr));
        CHECK_OK(op.RunBwd(handle(), grad_in, in, grad, target, chosen, nullptr));
        CHECK_CLOSE(out.read(), y.detach().view_as(g), kTolerance);
        CHECK_CLOSE(grad_in.read(), l.grad(), kTolerance);
      }
    }
  }
}

TEST_WITH_ENV(cross_entropy_loss_refuses, BLOCKING) {
  DeviceTensor in(at::randn({6, 5})), out(at::zeros({1})), image(at::randn({6, 5, 2, 2}));
  DeviceTensor narrow(at::zeros({6}, at::kInt)), beyond(at::tensor({0, 1, 2, 3, 4, 5}, at::kLong));
  DeviceTensor target(at::zeros({6}, at::kLong));
  CrossEntropyLoss op;
  op.SetReductionMode(CrossEntropyLoss::ReductionMode::MEAN);
  CHECK_STATUS(op.Run(handle(), out, in, narrow, Tensor(), nullptr), NOT_SUPPORTED);
  CHECK_STATUS(op.Run(handle(), out, image, target, Tensor(), nullptr), NOT_SUPPORTED);
  CHECK_STATUS(op.Run(handle(), out, in, beyond, Tensor(), nullptr), EXECUTION_FAILED);
  CHECK_OK(op.Run(handle(), out, in, target, Tensor(), nullptr));
}

TEST(ctc_loss_and_its_gradient) {
  const at::Tensor raw = at::randn({7, 3, 5});
  const at::Tensor t = at::randint(1, 5, {3, 4}, at::kLong);
  const std::vector<int64_t> inputs = {7, 6, 5}, targets = {3, 2, 1};
  const at::Tensor l = leaf(at::log_softmax(raw, 2));
  const at::Tensor y = at::ctc_loss(l, t, inputs, targets, 0, at::Reduction::None);
  const at::Tensor g = at::randn({3});
  y.backward(g);
  DeviceTensor in(l.detach()), target(t), grad(g), out(at::zeros({3})),
      grad_in(at::zeros_like(raw));
  // Room for longer targets than these.
  DeviceTensor alpha(at::zeros({3, 7, 9})), il(at::tensor(inputs)), tl(at::tensor(targets));
  CTCLoss op;
  CHECK_STATUS(op.Run(handle(), out, alpha, in, target, il, tl), INVALID_PARAMETER);  // no maximum
  op.SetMaxTargetLength(4);
  CHECK_OK(op.Run(handle(), out, alpha, in, target, il, tl));
  CHECK_OK(op.RunBwd(handle(), grad_in, grad, in, target, il, tl, out, alpha, nullptr));
  CHECK_CLOSE(out.read(), y.detach(), kTolerance);
  CHECK_CLOSE(grad_in.read(), l.grad(), kTolerance);
}

TEST_WITH_ENV(ctc_loss_checks_lengths_and_labels, BLOCKING) {
  DeviceTensor in(at::log_softmax(at::randn({7, 2, 5}), 2)), out(at::zeros({2}));
  DeviceTensor alpha(at::zeros({2, 7, 9})), target(at::ones({2, 4}, at::kLong));
  DeviceTensor lengths(at::tensor({3, 4}, at::kLong)), longer(at::tensor({3, 5}, at::kLong));
  DeviceTensor labels(at::tensor({1, 2, 3, 9, 1, 1, 1, 1}, at::kLong).view({2, 4}));
  CTCLoss op;
  op.SetMaxTargetLength(4);
  CHECK_OK(op.Run(handle(), out, alpha, in, target, lengths, lengths));
  CHECK_STATUS(op.Run(handle(), out, alpha, in, target, lengths, longer), EXECUTION_FAILED);
  CHECK_STATUS(op.Run(handle(), out, alpha, in, labels, lengths, lengths), EXECUTION_FAILED);
  op.SetBlank(5);
  CHECK_STATUS(op.Run(handle(), out, alpha, in, target, lengths, lengths), INVALID_PARAMETER);
}

}  // namespace
