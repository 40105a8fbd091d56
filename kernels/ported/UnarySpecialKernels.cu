// Error functions, gamma functions and Bessel functions.
#include <ATen/NumericUtils.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/util/MathConstants.h>

#include <cmath>
#include <limits>

#include "kernels/ported/DeviceMath.cuh"
#include "kernels/ported/OpmathDispatch.cuh"

// The functions that the CPU does not have for Half and BFloat16: refused here with the same
// message.
#define GPU_UNARY_WIDE(NAME, EXPRESSION) \
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), NAME, GPU_UNARY_CALLED_BODY(EXPRESSION))

namespace at::native {
namespace {

template <typename T>
__host__ __device__ inline T entropy_of(T x) {
  if (at::_isnan(x)) {
    return x;
  }
  if (x > 0) {
    return -x * std::log(x);
  }
  return x == 0 ? T(0) : -std::numeric_limits<T>::infinity();
}

template <typename T>
__host__ __device__ inline T sinc_of(T x) {
  if (x == T(0)) {
    return T(1);
  }
  const T product = T(c10::pi<double>) * x;
  return std::sin(product) / product;
}

void erf_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("erf_cuda", std::erf(x)); }

void erfc_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("erfc_cuda", std::erfc(x)); }

void erfinv_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("erfinv_cuda", erfinv_of(x)); }

void lgamma_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("lgamma_cuda", std::lgamma(x)); }

void digamma_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING("digamma_cuda", calc_digamma(x));
}

void polygamma_kernel(TensorIteratorBase& iter, int64_t n) {
  if (n == 0) {
    return digamma_kernel(iter);
  }
  if (n == 1) {
    AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "trigamma_cuda",
                               GPU_UNARY_CALLED_BODY(trigamma_of(x)));
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "polygamma_cuda", [&] {
    const auto order = static_cast<int>(n);
    gpu_kernel(iter, [order] GPU_LAMBDA(scalar_t x) GPU_CALLED -> scalar_t {
      return calc_polygamma(x, order);
    });
  });
}

void sinc_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("sinc_cuda", sinc_of(x));
}

// x counts the samples of the window.
void kaiser_window_kernel(TensorIteratorBase& iter, int64_t window_length, double beta) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter.dtype()), "kaiser_window_cuda", [&] {
    const auto middle = static_cast<scalar_t>((window_length - 1) / 2.0);
    const auto shape = static_cast<scalar_t>(beta);
    const scalar_t scale = 1 / calc_i0(shape);
    gpu_kernel(iter, [middle, shape, scale] GPU_LAMBDA(scalar_t x) -> scalar_t {
      const scalar_t ratio = (x - middle) / middle;
      const scalar_t inside = 1 - ratio * ratio;
      return calc_i0(shape * std::sqrt(inside > 0 ? inside : scalar_t(0))) * scale;
    });
  });
}

void i0_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("i0_cuda", calc_i0(x)); }

void i0e_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("i0e_cuda", calc_i0e(x)); }

void i1_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("i1_cuda", calc_i1(x)); }

void i1e_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("i1e_cuda", calc_i1e(x)); }

void entr_kernel(TensorIteratorBase& iter) { GPU_UNARY_FLOATING("entr_cuda", entropy_of(x)); }

void erfcx_kernel(TensorIteratorBase& iter) { GPU_UNARY_WIDE("erfcx_cuda", calc_erfcx(x)); }

void log_ndtr_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("log_ndtr_cuda", calc_log_ndtr(x));
}

void ndtri_kernel(TensorIteratorBase& iter) { GPU_UNARY_WIDE("ndtri_cuda", calc_ndtri(x)); }

void airy_ai_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("airy_ai_cuda", airy_ai_forward(x));
}

void bessel_j0_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("bessel_j0_cuda", bessel_j0_forward(x));
}

void bessel_j1_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("bessel_j1_cuda", bessel_j1_forward(x));
}

void bessel_y0_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("bessel_y0_cuda", bessel_y0_forward(x));
}

void bessel_y1_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("bessel_y1_cuda", bessel_y1_forward(x));
}

void modified_bessel_i0_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("modified_bessel_i0_cuda", modified_bessel_i0_forward(x));
}

void modified_bessel_i1_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("modified_bessel_i1_cuda", modified_bessel_i1_forward(x));
}

void modified_bessel_k0_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("modified_bessel_k0_cuda", modified_bessel_k0_forward(x));
}

void modified_bessel_k1_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("modified_bessel_k1_cuda", modified_bessel_k1_forward(x));
}

void scaled_modified_bessel_k0_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("scaled_modified_bessel_k0_cuda", scaled_modified_bessel_k0_forward(x));
}

void scaled_modified_bessel_k1_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("scaled_modified_bessel_k1_cuda", scaled_modified_bessel_k1_forward(x));
}

void spherical_bessel_j0_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_WIDE("spherical_bessel_j0_cuda", spherical_bessel_j0_forward(x));
}

}  // namespace

REGISTER_DISPATCH(erf_stub, &erf_kernel)
REGISTER_DISPATCH(erfc_stub, &erfc_kernel)
REGISTER_DISPATCH(erfinv_stub, &erfinv_kernel)
REGISTER_DISPATCH(lgamma_stub, &lgamma_kernel)
REGISTER_DISPATCH(digamma_stub, &digamma_kernel)
REGISTER_DISPATCH(polygamma_stub, &polygamma_kernel)
REGISTER_DISPATCH(sinc_stub, &sinc_kernel)
REGISTER_DISPATCH(kaiser_window_stub, &kaiser_window_kernel)
REGISTER_DISPATCH(i0_stub, &i0_kernel)
REGISTER_DISPATCH(special_i0e_stub, &i0e_kernel)
REGISTER_DISPATCH(special_i1_stub, &i1_kernel)
REGISTER_DISPATCH(special_i1e_stub, &i1e_kernel)
REGISTER_DISPATCH(special_entr_stub, &entr_kernel)
REGISTER_DISPATCH(special_erfcx_stub, &erfcx_kernel)
REGISTER_DISPATCH(special_log_ndtr_stub, &log_ndtr_kernel)
REGISTER_DISPATCH(special_ndtri_stub, &ndtri_kernel)
REGISTER_DISPATCH(special_airy_ai_stub, &airy_ai_kernel)
REGISTER_DISPATCH(special_bessel_j0_stub, &bessel_j0_kernel)
REGISTER_DISPATCH(special_bessel_j1_stub, &bessel_j1_kernel)
REGISTER_DISPATCH(special_bessel_y0_stub, &bessel_y0_kernel)
REGISTER_DISPATCH(special_bessel_y1_stub, &bessel_y1_kernel)
REGISTER_DISPATCH(special_modified_bessel_i0_stub, &modified_bessel_i0_kernel)
REGISTER_DISPATCH(special_modified_bessel_i1_stub, &modified_bessel_i1_kernel)
REGISTER_DISPATCH(special_modified_bessel_k0_stub, &modified_bessel_k0_kernel)
REGISTER_DISPATCH(special_modified_bessel_k1_stub, &modified_bessel_k1_kernel)
REGISTER_DISPATCH(special_scaled_modified_bessel_k0_stub, &scaled_modified_bessel_k0_kernel)
REGISTER_DISPATCH(special_scaled_modified_bessel_k1_stub, &scaled_modified_bessel_k1_kernel)
REGISTER_DISPATCH(special_spherical_bessel_j0_stub, &spherical_bessel_j0_kernel)

}  // namespace at::native
