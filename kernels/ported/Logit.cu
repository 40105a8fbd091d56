// logit and its gradient. eps < 0 stands for none.
#include <ATen/native/BinaryOps.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include <cmath>
#include <limits>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

void logit_kernel(TensorIteratorBase& iter, const Scalar& eps_scalar) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "logit_cuda", [&] {
    const auto eps = eps_scalar.to<scalar_t>();
    const scalar_t low = eps < 0 ? -std::numeric_limits<scalar_t>::infinity() : eps;
    const scalar_t high = eps < 0 ? std::numeric_limits<scalar_t>::infinity() : 1 - eps;
    gpu_kernel(iter, [low, high] GPU_LAMBDA(scalar_t x) -> scalar_t {
      const scalar_t p = x < low ? low : (x > high ? high : x);
      return std::log(p / (1 - p));
    });
  });
}

void logit_backward_kernel(TensorIteratorBase& iter, const Scalar& eps_scalar) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "logit_backward_cuda", [&] {
    const auto eps = eps_scalar.to<scalar_t>();
    // Without a bound logit is undefined outside [0, 1]; with one it is constant outside.
    const scalar_t low = eps < 0 ? scalar_t(0) : eps;
    const scalar_t high = 1 - low;
    const scalar_t outside = eps < 0 ? std::numeric_limits<scalar_t>::quiet_NaN() : scalar_t(0);
    gpu_kernel(iter, [low, high, outside] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      return x < low || x > high ? outside : grad / (x * (1 - x));
    });
  });
}

}  // namespace

REGISTER_DISPATCH(logit_stub, &logit_kernel)
REGISTER_DISPATCH(logit_backward_stub, &logit_backward_kernel)

}  // namespace at::native
