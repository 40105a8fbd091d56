// binary_cross_entropy and its gradient: muDNN has neither.
#include <torch_musa/ops/binary_cross_entropy_backward_native.h>
#include <torch_musa/ops/binary_cross_entropy_native.h>

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>

#include "kernels/ported/KernelCheck.cuh"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

// Where PyTorch cuts the logarithm off, so that the loss stays finite, and the denominator of the
// gradient.
constexpr double kSmallestLog = -100;
constexpr double kSmallestVariance = 1e-12;

template <typename T>
C10_HOST_DEVICE T bounded_log(T x) {
  const T value = std::log(x);
  return value < T(kSmallestLog) ? T(kSmallestLog) : value;
}

// loss = -(target * log(input) + (1 - target) * log(1 - input)), element by element.
void element_loss(const Tensor& input, const Tensor& target, const Tensor& loss) {
  TensorIterator iter = TensorIteratorConfig()
                            .add_output(loss)
                            .add_const_input(input)
                            .add_const_input(target)
                            .build();
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kHalf, kBFloat16, iter.common_dtype(), "binary_cross_entropy", [&] {
        using opmath_t = at::opmath_type<scalar_t>;
        native::gpu_kernel(iter, [] GPU_LAMBDA(scalar_t p, scalar_t t) -> scalar_t {
          const opmath_t probability = p, truth = t;
          KERNEL_CHECK(probability >= 0 && probability <= 1,
                       "all elements of input should be between 0 and 1");
          return (truth - 1) * bounded_log(1 - probability) - truth * bounded_log(probability);
        });
      });
}

void element_gradient(const Tensor& grad, const Tensor& input, const Tensor& target,
                      const Tensor& grad_input) {
  TensorIterator iter = TensorIteratorConfig()
                            .add_output(grad_input)
                            .add_const_input(grad)
                            .add_const_input(input)
                            .add_const_input(target)
                            .build();
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kHalf, kBFloat16, iter.common_dtype(), "binary_cross_entropy_backward", [&] {
        using opmath_t = at::opmath_type<scalar_t>;
        native::gpu_kernel(iter, [] GPU_LAMBDA(scalar_t g, scalar_t p, scalar_t t) -> scalar_t {
          const opmath_t gradient = g, probability = p, truth = t;
          const opmath_t variance = (1 - probability) * probability;
          const opmath_t smallest = kSmallestVariance;
          return gradient * (probability - truth) / (variance < smallest ? smallest : variance);
        });
      });
}

// The result takes part in the elementwise loop, where upstream allows one dtype.
void check_out(const Tensor& out, const Tensor& input) {
  TORCH_CHECK(out.scalar_type() == input.scalar_type(), "Found dtype ", out.scalar_type(),
              " but expected ", input.scalar_type());
}

Tensor weighted_loss(const Tensor& input, const Tensor& target,
                     const std::optional<Tensor>& weight) {
  Tensor loss = at::empty_like(input);
  element_loss(input, target, loss);
  return weight.has_value() && weight->defined() ? loss.mul_(*weight) : loss;
}

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == Reduction::Mean) return loss.mean();
  if (reduction == Reduction::Sum) return loss.sum();
  return loss;
}

Tensor& write_to(Tensor& out, const Tensor& result) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

}  // namespace

Tensor BinaryCrossEntropy(const Tensor& self, const Tensor& target,
                          const std::optional<Tensor>& weight, int64_t reduction) {
  const c10::musa::MUSAGuard guard(self.device());
  return reduced(weighted_loss(self, target, weight), reduction);
}

Tensor& BinaryCrossEntropyOut(const Tensor& self, const Tensor& target,
                              const std::optional<Tensor>& weight, int64_t reduction, Tensor& out) {
  const c10::musa::MUSAGuard guard(self.device());
  check_out(out, self);
  return write_to(out, reduced(weighted_loss(self, target, weight), reduction));
}

Tensor BinaryCrossEntropyBackward(const Tensor& grad_output, const Tensor& self,
                                  const Tensor& target, const std::optional<Tensor>& weight,
                                  int64_t reduction) {
  const c10::musa::MUSAGuard guard(self.device());
  Tensor grad_input = at::empty_like(self);
  element_gradient(grad_output, self, target, grad_input);
  if (weight.has_value() && weight->defined()) grad_input.mul_(*weight);
  if (reduction == Reduction::Mean) grad_input.div_(self.numel());
  return grad_input;
}

Tensor& BinaryCrossEntropyBackwardOut(const Tensor& grad_output, const Tensor& self,
                                      const Tensor& target, const std::optional<Tensor>& weight,
                                      int64_t reduction, Tensor& grad_input) {
  check_out(grad_input, self);
  return write_to(grad_input,
                  BinaryCrossEntropyBackward(grad_output, self, target, weight, reduction));
}

}  // namespace at::musa
