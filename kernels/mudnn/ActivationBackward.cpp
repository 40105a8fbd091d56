// muDNN's *_BW modes of Binary: lhs is the gradient, rhs the forward input, or the forward output
// for sigmoid and tanh.

#include "kernels/mudnn/Operands.h"

#include <torch_musa/ops/gelu_backward_native.h>
#include <torch_musa/ops/leaky_relu_backward_native.h>
#include <torch_musa/ops/sigmoid_backward_native.h>
#include <torch_musa/ops/silu_backward_native.h>
#include <torch_musa/ops/tanh_backward_native.h>
#include <torch_musa/ops/threshold_backward_native.h>

#include <ATen/native/Gelu.h>

namespace at::musa {

TORCH_IMPL_FUNC(MusaSigmoidBackward)
(const Tensor& grad_output, const Tensor& output, const Tensor& grad_input) {
  if (isComplexType(common_dtype())) {
    const Tensor y = output.to(common_dtype());
    grad_input.copy_(y.sub(y.square()).conj().mul(grad_output.to(common_dtype())));
    return;
  }
  RunBinary(*this, BinaryMode::SIGMOID_BW, {"sigmoid_backward_cpu"});
}

TORCH_IMPL_FUNC(MusaTanhBackward)
(const Tensor& grad_output, const Tensor& output, const Tensor& grad_input) {
  if (isComplexType(common_dtype())) {
    grad_input.copy_(output.to(common_dtype())
                         .square()
                         .neg_()
                         .add_(1)
                         .conj()
                         .mul(grad_output.to(common_dtype())));
    return;
  }
  RunBinary(*this, BinaryMode::TANH_BW, {"tanh_backward_cpu"});
}

TORCH_IMPL_FUNC(MusaSiluBackward)
(const Tensor& grad_output, const Tensor& self, const Tensor& grad_input) {
  if (isComplexType(common_dtype())) {
    const Tensor x = self.to(common_dtype()), gate = x.sigmoid();
    grad_input.copy_(
        gate.neg().add_(1).mul_(x).add_(1).mul_(gate).mul(grad_output.to(common_dtype())));
    return;
  }
  RunBinary(*this, BinaryMode::SILU_BW, {"silu_backward_cpu"});
}

TORCH_IMPL_FUNC(MusaGeluBackward)
(const Tensor& /*grad_output*/, const Tensor& /*self*/, std::string_view approximate,
 const Tensor& /*grad_input*/) {
  const bool tanh = native::get_gelutype_enum(approximate) == native::GeluType::Tanh;
  RunBinary(*this, tanh ? BinaryMode::GELU_TANH_BW : BinaryMode::GELU_NONE_BW,
            {"GeluBackwardKernelImpl"});
}

// Argument 1 of this iterator is the forward input and argument 2 the gradient, so the order is
// turned below.
TORCH_IMPL_FUNC(MusaThresholdBackward)
(const Tensor& grad_output, const Tensor& self, const Scalar& threshold, const Tensor& grad_input) {
  RunBinary(*this, BinaryMode::THRESHOLD_BW,
            {.name = "threshold_cpu", .alpha = threshold, .swapped = true});
}

// self_is_result changes nothing: the meta function has refused it for negative slopes, and for the
// others the output has the sign of the input.
TORCH_IMPL_FUNC(MusaLeakyReluBackward)
(const Tensor& grad_output, const Tensor& self, const Scalar& negative_slope,
 bool /*self_is_result*/, const Tensor& grad_input) {
  RunBinary(*this, BinaryMode::LEAKY_RELU_BW,
            {.name = "leaky_relu_backward_cpu", .alpha = negative_slope, .swapped = true});
}

}  // namespace at::musa
