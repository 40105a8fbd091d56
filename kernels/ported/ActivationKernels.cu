// Activations for which muDNN has no mode, and gradients of those it has no *_BW mode for. Most
// hang on PyTorch's stubs: the operators around them are PyTorch's.
#include <ATen/Dispatch.h>
#include <ATen/native/Activation.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/core/Scalar.h>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

// Inputs: what is compared, what passes.
void threshold_kernel(TensorIteratorBase& iter, const Scalar& threshold, const Scalar& value) {
  AT_DISPATCH_ALL_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "threshold_cuda", [&] {
    const auto limit = threshold.to<scalar_t>();
    const auto below = value.to<scalar_t>();
    gpu_kernel(iter, [limit, below] GPU_LAMBDA(scalar_t x, scalar_t passed) -> scalar_t {
      return x <= limit ? below : passed;
    });
  });
}

// Inputs: gradient, forward input or (is_result) output.
void elu_backward_kernel(TensorIteratorBase& iter, const Scalar& alpha, const Scalar& scale,
                         const Scalar& input_scale, bool is_result) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "elu_backward_cuda", [&] {
    const auto negative = alpha.to<scalar_t>() * scale.to<scalar_t>();
    const auto positive = scale.to<scalar_t>();
    const auto inner = input_scale.to<scalar_t>();
    if (is_result) {
      gpu_kernel(iter, [=] GPU_LAMBDA(scalar_t grad, scalar_t y) -> scalar_t {
        return y <= 0 ? grad * inner * (y + negative) : grad * positive;
      });
    } else {
      gpu_kernel(iter, [=] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
        return x <= 0 ? grad * inner * negative * std::exp(x * inner) : grad * positive;
      });
    }
  });
}

void softplus_backward_kernel(TensorIteratorBase& iter, const Scalar& beta,
                              const Scalar& threshold) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "softplus_backward_cuda", [&] {
    const auto slope = beta.to<scalar_t>();
    const auto limit = threshold.to<scalar_t>();
    gpu_kernel(iter, [slope, limit] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      if (x * slope > limit) return grad;
      const scalar_t z = std::exp(x * slope);
      return grad * z / (z + scalar_t(1));
    });
  });
}

void hardsigmoid_backward_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "hardsigmoid_backward_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      return x > scalar_t(-3) && x < scalar_t(3) ? grad * scalar_t(1.0 / 6.0) : scalar_t(0);
    });
  });
}

void hardswish_backward_kernel(TensorIterator& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "hardswish_backward_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      if (x <= scalar_t(-3)) return scalar_t(0);
      return x < scalar_t(3) ? grad * (x / scalar_t(3) + scalar_t(0.5)) : grad;
    });
  });
}

void mish_backward_kernel(TensorIterator& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "mish_backward_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      const scalar_t s = scalar_t(1) / (scalar_t(1) + std::exp(-x));
      const scalar_t t = std::tanh(std::log1p(std::exp(x)));
      return grad * (t + x * s * (scalar_t(1) - t * t));
    });
  });
}

void hardtanh_backward_kernel(TensorIterator& iter, const Scalar& min, const Scalar& max) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "hardtanh_backward_cuda", [&] {
    const auto low = min.to<scalar_t>();
    const auto high = max.to<scalar_t>();
    gpu_kernel(iter, [low, high] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
      return x <= low || x >= high ? scalar_t(0) : grad;
    });
  });
}

void hardshrink_kernel(TensorIteratorBase& iter, const Scalar& lambda) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "hardshrink_cuda", [&] {
    const auto limit = lambda.to<scalar_t>();
    gpu_kernel(iter, [limit] GPU_LAMBDA(scalar_t x) -> scalar_t {
      return x >= -limit && x <= limit ? scalar_t(0) : x;
    });
  });
}

void softshrink_kernel(TensorIteratorBase& iter, const Scalar& lambda) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "softshrink_cuda", [&] {
    const auto limit = lambda.to<scalar_t>();
    gpu_kernel(iter, [limit] GPU_LAMBDA(scalar_t x) -> scalar_t {
      if (x > limit) return x - limit;
      if (x < -limit) return x + limit;
      return x == x ? scalar_t(0) : x;
    });
  });
}

void shrink_backward_kernel(TensorIteratorBase& iter, const Scalar& lambda) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kHalf, kBFloat16, iter.common_dtype(), "shrink_backward_cuda", [&] {
        const auto limit = lambda.to<scalar_t>();
        gpu_kernel(iter, [limit] GPU_LAMBDA(scalar_t grad, scalar_t x) -> scalar_t {
          return x >= -limit && x <= limit ? scalar_t(0) : grad;
        });
      });
}

// Inputs: the two halves of the operand.
void glu_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "glu_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t {
      return a / (scalar_t(1) + std::exp(-b));
    });
  });
}

// The gradient of the second half. Inputs: sigmoid of the second half, first half, gradient.
void glu_backward_kernel(TensorIterator& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "glu_backward_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t gate, scalar_t a, scalar_t grad) -> scalar_t {
      return (scalar_t(1) - gate) * gate * a * grad;
    });
  });
}

// Inputs: the result, the second half, and the tangents of the two halves.
void glu_jvp_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "glu_jvp_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t y, scalar_t b, scalar_t da, scalar_t db) -> scalar_t {
      const scalar_t gate = scalar_t(1) / (scalar_t(1) + std::exp(-b));
      return da * gate + y * (db - gate * db);
    });
  });
}

void prelu_kernel(TensorIterator& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "prelu_cuda", [&] {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x, scalar_t weight) -> scalar_t {
      return x > scalar_t(0) ? x : weight * x;
    });
  });
}

}  // namespace

REGISTER_DISPATCH(threshold_stub, &threshold_kernel)
REGISTER_DISPATCH(elu_backward_stub, &elu_backward_kernel)
REGISTER_DISPATCH(softplus_backward_stub, &softplus_backward_kernel)
REGISTER_DISPATCH(hardsigmoid_backward_stub, &hardsigmoid_backward_kernel)
REGISTER_DISPATCH(hardswish_backward_stub, &hardswish_backward_kernel)
REGISTER_DISPATCH(mish_backward_stub, &mish_backward_kernel)
REGISTER_DISPATCH(hardtanh_backward_stub, &hardtanh_backward_kernel)
REGISTER_DISPATCH(hardshrink_stub, &hardshrink_kernel)
REGISTER_DISPATCH(softshrink_stub, &softshrink_kernel)
REGISTER_DISPATCH(shrink_backward_stub, &shrink_backward_kernel)
REGISTER_DISPATCH(glu_stub, &glu_kernel)
REGISTER_DISPATCH(glu_backward_stub, &glu_backward_kernel)
REGISTER_DISPATCH(glu_jvp_stub, &glu_jvp_kernel)
REGISTER_DISPATCH(prelu_stub, &prelu_kernel)

}  // namespace at::native
