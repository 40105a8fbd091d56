#include "kernels/mudnn/AlongDim.h"
#include "kernels/mudnn/Layout.h"

#include <torch_musa/ops/_log_softmax_backward_data_native.h>
#include <torch_musa/ops/_log_softmax_native.h>
#include <torch_musa/ops/_softmax_backward_data_native.h>
#include <torch_musa/ops/_softmax_native.h>

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>

namespace at::musa {
namespace {

using SoftmaxMode = ::musa::dnn::Softmax::Mode;

::musa::dnn::Softmax along_middle(SoftmaxMode mode) {
  ::musa::dnn::Softmax op;
  CHECK_MUDNN_STATUS(op.SetMode(mode), "SetMode");
  CHECK_MUDNN_STATUS(op.SetAlgorithm(::musa::dnn::Softmax::Algorithm::ACCURATE), "SetAlgorithm");
  CHECK_MUDNN_STATUS(op.SetDim(kAlongAxis), "SetDim");
  return op;
}

// muDNN wants contiguous operands. With half_to_float, out is float and a half operand is cast on
// the way in.
void forward(const char* name, SoftmaxMode mode, const Tensor& self, int64_t dim,
             const Tensor& out) {
  if (out.numel() == 0) return;
  CheckFloatingType(self.scalar_type(), name);
  const Tensor in = self.to(out.scalar_type()).contiguous();
  const DenseOutput target(out);
  const int64_t wrapped = maybe_wrap_dim(dim, self.dim());
  muTensor mu_in = DescribeAlong(in, wrapped);
  muTensor mu_out = DescribeAlong(target.tensor(), wrapped);
  CHECK_MUDNN_STATUS(along_middle(mode).Run(GetMudnnHandle(), mu_out, mu_in), name);
  target.finish();
}

// grad_input is half where the forward went from half to float.
void backward(const char* name, SoftmaxMode mode, const Tensor& grad_output, const Tensor& output,
              int64_t dim, const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const ScalarType compute = grad_output.scalar_type();
  CheckFloatingType(compute, name);
  const Tensor grad = grad_output.contiguous();
  const Tensor result = output.to(compute).contiguous();
  const Tensor target = grad_input.scalar_type() == compute && grad_input.is_contiguous()
                            ? grad_input
                            : at::empty(grad_input.sizes(), grad.options());
  const int64_t wrapped = maybe_wrap_dim(dim, grad.dim());
  muTensor mu_grad = DescribeAlong(grad, wrapped);
  muTensor mu_result = DescribeAlong(result, wrapped);
  muTensor mu_target = DescribeAlong(target, wrapped);
  CHECK_MUDNN_STATUS(along_middle(mode).RunBwd(GetMudnnHandle(), mu_target, mu_result, mu_grad),
                     name);
  if (!target.is_same(grad_input)) grad_input.copy_(target);
}

}  // namespace

TORCH_IMPL_FUNC(MusaSoftmax)
(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward("softmax", SoftmaxMode::SOFTMAX, self, dim, out);
}

TORCH_IMPL_FUNC(MusaLogSoftmax)
(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward("log_softmax", SoftmaxMode::LOGSOFTMAX, self, dim, out);
}

TORCH_IMPL_FUNC(MusaSoftmaxBackward)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType /*input_dtype*/,
 const Tensor& grad_input) {
  backward("softmax_backward", SoftmaxMode::SOFTMAX, grad_output, output, dim, grad_input);
}

TORCH_IMPL_FUNC(MusaLogSoftmaxBackward)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType /*input_dtype*/,
 const Tensor& grad_input) {
  backward("log_softmax_backward", SoftmaxMode::LOGSOFTMAX, grad_output, output, dim, grad_input);
}

}  // namespace at::musa
