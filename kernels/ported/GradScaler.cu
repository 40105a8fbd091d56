// What torch.amp.GradScaler calls: the check of all gradients and their unscaling, and the step of
// the scale. Neither waits for the device.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/cuda/CUDAGuard.h>
#include <torch_musa/ops/_amp_foreach_non_finite_check_and_unscale_native.h>
#include <torch_musa/ops/_amp_update_scale_native.h>

#include <cmath>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/OpmathDispatch.cuh"

namespace at::musa {
namespace {

void check_number(const Tensor& tensor, ScalarType dtype, const char* name) {
  TORCH_CHECK(tensor.numel() == 1, name, " must be a 1-element tensor.");
  TORCH_CHECK(tensor.scalar_type() == dtype, name, " must be a tensor of dtype ", dtype,
              ", but is one of ", tensor.scalar_type());
}

// Threads of several blocks may come here. (gpu_kernel's functor is the host's as well to a device
// compiler, which has atomics for the device alone.)
__host__ __device__ inline void raise(float* flag) {
#if !defined(__MUSA__) || defined(__CUDA_ARCH__)
  atomicExch(flag, 1.0f);
#endif
}

}  // namespace

void AmpForeachNonFiniteCheckAndUnscale_(TensorList self, Tensor& found_inf,
                                         const Tensor& inv_scale) {
  if (self.empty()) return;
  check_number(inv_scale, kFloat, "inv_scale");
  check_number(found_inf, kFloat, "found_inf");
  const c10::cuda::CUDAGuard guard(found_inf.device());
  float* found = found_inf.mutable_data_ptr<float>();
  const float* factor = inv_scale.const_data_ptr<float>();
  for (const Tensor& gradient : self) {
    TORCH_CHECK(gradient.layout() == kStrided, "one of scaled_grads was not a strided tensor.");
    auto iter = TensorIterator::unary_op(const_cast<Tensor&>(gradient), gradient);
    AT_DISPATCH_FLOATING_TYPES(
        native::opmath_dtype(iter), "_amp_foreach_non_finite_check_and_unscale_cuda", [&] {
          native::gpu_kernel(iter, [found, factor] GPU_LAMBDA(scalar_t x) -> scalar_t {
            if (!std::isfinite(x)) raise(found);
            const float inverse = *factor;
            return inverse == 1.0f ? x : static_cast<scalar_t>(x * inverse);
          });
        });
  }
}

Tensor& AmpUpdateScale_(Tensor& self, Tensor& growth_tracker, const Tensor& found_inf,
                        double growth_factor, double backoff_factor, int64_t growth_interval) {
  check_number(growth_tracker, kInt, "growth_tracker");
  check_number(self, kFloat, "current_scale");
  check_number(found_inf, kFloat, "found_inf");
  float* scale = self.mutable_data_ptr<float>();
  int* successes = growth_tracker.mutable_data_ptr<int>();
  const float* found = found_inf.const_data_ptr<float>();
  native::for_each_index(self.device(), 1, [=] GPU_LAMBDA(int64_t) {
    if (*found != 0) {
      *scale = static_cast<float>(*scale * backoff_factor);
      *successes = 0;
    } else if (*successes + 1 == growth_interval) {
      const auto grown = static_cast<float>(*scale * growth_factor);
      if (std::isfinite(grown)) *scale = grown;  // a scale beyond float32 would never come back
      *successes = 0;
    } else {
      *successes += 1;
    }
  });
  return self;
}

}  // namespace at::musa
