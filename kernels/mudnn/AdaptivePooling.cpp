#include <torch_musa/ops/_adaptive_avg_pool2d_backward_native.h>
#include <torch_musa/ops/_adaptive_avg_pool2d_native.h>
#include <torch_musa/ops/adaptive_avg_pool2d_native.h>
#include <torch_musa/ops/adaptive_max_pool2d_backward_native.h>
#include <torch_musa/ops/adaptive_max_pool2d_native.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "kernels/mudnn/PoolImage.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

using ::musa::dnn::Pooling;

Pooling Configure(Pooling::Mode mode) {
  Pooling pool;
  CHECK_MUDNN_STATUS(pool.SetMode(mode), "SetMode");
  return pool;
}

// (N, C, H, W) or (C, H, W) with the last two replaced; checks what there is no meta to check.
DimVector PooledSizes(const Tensor& self, IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  const int64_t ndim = self.dim();
  TORCH_CHECK(ndim == 3 || ndim == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ",
              self.sizes());
  for (const int64_t d : {ndim - 2, ndim - 1}) {
    TORCH_CHECK(self.size(d) > 0,
                "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch "
                "dimensions, but input has sizes ",
                self.sizes(), " with dimension ", d, " being empty");
  }
  if (self.numel() != 0) CheckFloatingType(self.scalar_type(), "adaptive_avg_pool2d");
  DimVector sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.append(output_size.begin(), output_size.end());
  return sizes;
}

MemoryFormat OutputFormat(const Tensor& self) {
  return self.dim() == 4 ? ImageFormat(self) : MemoryFormat::Contiguous;
}

}  // namespace

Tensor AdaptiveAvgPool2d(const Tensor& self, IntArrayRef output_size) {
  const DimVector sizes = PooledSizes(self, output_size);
  const c10::musa::MUSAGuard guard(self.device());
  Tensor out = at::empty(sizes, self.options(), OutputFormat(self));
  PoolImage(Configure(Pooling::Mode::ADAPTIVE_AVGPOOL), self, out, Tensor());
  return out;
}

Tensor& AdaptiveAvgPool2dOut(const Tensor& self, IntArrayRef output_size, Tensor& out) {
  const DimVector sizes = PooledSizes(self, output_size);
  TORCH_CHECK(self.dtype() == out.dtype(), "expected dtype ", self.dtype(),
              " for `output` but got dtype ", out.dtype());
  const c10::musa::MUSAGuard guard(self.device());
  out.resize_(sizes, OutputFormat(self));
  PoolImage(Configure(Pooling::Mode::ADAPTIVE_AVGPOOL), self, out, Tensor());
  return out;
}

Tensor AdaptiveAvgPool2dBackward(const Tensor& grad_output, const Tensor& self) {
  const DimVector expected =
      PooledSizes(self, grad_output.sizes().slice(std::max<int64_t>(grad_output.dim() - 2, 0)));
  TORCH_CHECK(grad_output.sizes() == expected,
              "adaptive_avg_pool2d_backward(): expected grad_output of sizes ", expected,
              ", but got ", grad_output.sizes());
  TORCH_CHECK(self.dtype() == grad_output.dtype(), "expected dtype ", self.dtype(),
              " for `grad_output` but got dtype ", grad_output.dtype());
  const c10::musa::MUSAGuard guard(self.device());
  Tensor grad_input = at::empty_like(self, self.suggest_memory_format());
  if (grad_output.numel() == 0) return grad_input.zero_();
  PoolImageBackward(Configure(Pooling::Mode::ADAPTIVE_AVGPOOL), grad_output, Tensor(), grad_input);
  return grad_input;
}

TORCH_IMPL_FUNC(AdaptiveMaxPool2dOut)
(const Tensor& self, IntArrayRef, const Tensor& out, const Tensor& indices) {
  CheckFloatingType(self.scalar_type(), "adaptive_max_pool2d");
  PoolImage(Configure(Pooling::Mode::ADAPTIVE_MAXPOOL), self, out, indices);
}

TORCH_IMPL_FUNC(AdaptiveMaxPool2dBackwardOut)
(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& grad_input) {
  CheckFloatingType(self.scalar_type(), "adaptive_max_pool2d_backward");
  if (grad_output.numel() == 0) {
    grad_input.zero_();
    return;
  }
  PoolImageBackward(Configure(Pooling::Mode::ADAPTIVE_MAXPOOL), grad_output, indices, grad_input);
}

}  // namespace at::musa
