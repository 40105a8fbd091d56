// Orthogonal polynomials: p(x, n), of degree n at x.
#include <ATen/Dispatch.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/DeviceMath.cuh"

// NAME_kernel for NAME_forward. As on the CPU, not for Half and BFloat16.
#define GPU_POLYNOMIAL(NAME)                                                                    \
  template <typename T>                                                                         \
  C10_HOST_DEVICE DEVICE_OUT_OF_LINE T NAME##_of(T x, T n) {                                    \
    return NAME##_forward(x, n);                                                                \
  }                                                                                             \
  void NAME##_kernel(TensorIteratorBase& iter) {                                                \
    AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), #NAME "_cuda", [&] {                        \
      gpu_kernel_with_scalars(                                                                  \
          iter, [] GPU_LAMBDA(scalar_t x, scalar_t n) -> scalar_t { return NAME##_of(x, n); }); \
    });                                                                                         \
  }

namespace at::native {
namespace {

GPU_POLYNOMIAL(chebyshev_polynomial_t)
GPU_POLYNOMIAL(chebyshev_polynomial_u)
GPU_POLYNOMIAL(chebyshev_polynomial_v)
GPU_POLYNOMIAL(chebyshev_polynomial_w)
GPU_POLYNOMIAL(hermite_polynomial_h)
GPU_POLYNOMIAL(hermite_polynomial_he)
GPU_POLYNOMIAL(laguerre_polynomial_l)
GPU_POLYNOMIAL(legendre_polynomial_p)
GPU_POLYNOMIAL(shifted_chebyshev_polynomial_t)
GPU_POLYNOMIAL(shifted_chebyshev_polynomial_u)
GPU_POLYNOMIAL(shifted_chebyshev_polynomial_v)
GPU_POLYNOMIAL(shifted_chebyshev_polynomial_w)

}  // namespace

REGISTER_DISPATCH(chebyshev_polynomial_t_stub, &chebyshev_polynomial_t_kernel)
REGISTER_DISPATCH(chebyshev_polynomial_u_stub, &chebyshev_polynomial_u_kernel)
REGISTER_DISPATCH(chebyshev_polynomial_v_stub, &chebyshev_polynomial_v_kernel)
REGISTER_DISPATCH(chebyshev_polynomial_w_stub, &chebyshev_polynomial_w_kernel)
REGISTER_DISPATCH(hermite_polynomial_h_stub, &hermite_polynomial_h_kernel)
REGISTER_DISPATCH(hermite_polynomial_he_stub, &hermite_polynomial_he_kernel)
REGISTER_DISPATCH(laguerre_polynomial_l_stub, &laguerre_polynomial_l_kernel)
REGISTER_DISPATCH(legendre_polynomial_p_stub, &legendre_polynomial_p_kernel)
REGISTER_DISPATCH(shifted_chebyshev_polynomial_t_stub, &shifted_chebyshev_polynomial_t_kernel)
REGISTER_DISPATCH(shifted_chebyshev_polynomial_u_stub, &shifted_chebyshev_polynomial_u_kernel)
REGISTER_DISPATCH(shifted_chebyshev_polynomial_v_stub, &shifted_chebyshev_polynomial_v_kernel)
REGISTER_DISPATCH(shifted_chebyshev_polynomial_w_stub, &shifted_chebyshev_polynomial_w_kernel)

}  // namespace at::native
