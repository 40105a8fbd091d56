#include <torch_musa/ops/avg_pool2d_backward_native.h>
#include <torch_musa/ops/avg_pool2d_native.h>
#include <torch_musa/ops/max_pool2d_with_indices_backward_native.h>
#include <torch_musa/ops/max_pool2d_with_indices_native.h>

#include "kernels/mudnn/PoolImage.h"
#include "torch_musa/csrc/aten/utils/Utils.h"

// The metas have checked every shape and given the outputs theirs; guards are set by the generated
// wrappers.

namespace at::musa {
namespace {

using ::musa::dnn::Pooling;

// A parameter of one value stands for both dimensions.
std::array<int, 2> Pair(IntArrayRef values) {
  return {ToInt(values[0]), ToInt(values[values.size() - 1])};
}

struct Window {
  std::array<int, 2> kernel, stride, padding;
  std::array<int, 2> dilation{1, 1};
};

// A stride that is not given is the kernel's size.
Window MakeWindow(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding) {
  return {Pair(kernel), Pair(stride.empty() ? kernel : stride), Pair(padding)};
}

Pooling Configure(Pooling::Mode mode, const Window& w) {
  Pooling pool;
  CHECK_MUDNN_STATUS(pool.SetMode(mode), "SetMode");
  CHECK_MUDNN_STATUS(
      pool.SetNdInfo(2, w.kernel.data(), w.padding.data(), w.stride.data(), w.dilation.data()),
      "SetNdInfo");
  return pool;
}

Pooling ConfigureAverage(const Window& w, bool count_include_pad,
                         std::optional<int64_t> divisor_override) {
  Pooling pool = Configure(count_include_pad ? Pooling::Mode::AVGPOOL_COUNT_PAD
                                             : Pooling::Mode::AVGPOOL_COUNT_WITHOUT_PAD,
                           w);
  if (divisor_override.has_value()) {
    CHECK_MUDNN_STATUS(pool.SetDivisor(ToInt(*divisor_override)), "SetDivisor");
  }
  return pool;
}

// The maximum needs an order only, so integers pool as well.
void CheckMaxPoolType(ScalarType dtype, const char* op) {
  if (!isIntegralType(dtype, /*includeBool=*/false)) CheckFloatingType(dtype, op);
}

}  // namespace

TORCH_IMPL_FUNC(MaxPool2dWithIndicesOut)
(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
 IntArrayRef dilation, bool, const Tensor& out, const Tensor& indices) {
  CheckMaxPoolType(self.scalar_type(), "max_pool2d");
  Window window = MakeWindow(kernel_size, stride, padding);
  window.dilation = Pair(dilation);
  PoolImage(Configure(Pooling::Mode::MAXPOOL, window), self, out, indices);
}

TORCH_IMPL_FUNC(MaxPool2dWithIndicesBackwardOut)
(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
 IntArrayRef padding, IntArrayRef dilation, bool, const Tensor& indices, const Tensor& grad_input) {
  CheckMaxPoolType(self.scalar_type(), "max_pool2d_backward");
  Window window = MakeWindow(kernel_size, stride, padding);
  window.dilation = Pair(dilation);
  PoolImageBackward(Configure(Pooling::Mode::MAXPOOL, window), grad_output, indices, grad_input);
}

TORCH_IMPL_FUNC(AvgPool2dOut)
(const Tensor& self, int64_t kH, int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW,
 bool, bool count_include_pad, std::optional<int64_t> divisor_override, const Tensor& out) {
  if (self.scalar_type() != kLong) CheckFloatingType(self.scalar_type(), "avg_pool2d");
  const Window window = MakeWindow({kH, kW}, {dH, dW}, {padH, padW});
  PoolImage(ConfigureAverage(window, count_include_pad, divisor_override), self, out, Tensor());
}

TORCH_IMPL_FUNC(AvgPool2dBackwardOut)
(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
 IntArrayRef padding, bool, bool count_include_pad, std::optional<int64_t> divisor_override,
 const Tensor& grad_input) {
  if (self.scalar_type() != kLong) CheckFloatingType(self.scalar_type(), "avg_pool2d_backward");
  const Window window = MakeWindow(kernel_size, stride, padding);
  PoolImageBackward(ConfigureAverage(window, count_include_pad, divisor_override), grad_output,
                    Tensor(), grad_input);
}

}  // namespace at::musa
