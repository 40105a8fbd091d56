// Orthogonal polynomials: p(x, n), of degree n at x.
#include <ATen/Dispatch.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/DeviceMath.cuh"
#include "kernels/ported/OpmathDispatch.cuh"

// As on the CPU, not for Half and BFloat16.
#define GPU_POLYNOMIAL(NAME, FORWARD)                                                            \
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), NAME, [&] {                                    \
    gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t x, scalar_t n) GPU_CALLED -> scalar_t { \
      return FORWARD(x, n);                                                                      \
    });                                                                                          \
  })

namespace at::native {
namespace {

void chebyshev_polynomial_t_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("chebyshev_polynomial_t_cuda", chebyshev_polynomial_t_forward);
}

void chebyshev_polynomial_u_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("chebyshev_polynomial_u_cuda", chebyshev_polynomial_u_forward);
}

void chebyshev_polynomial_v_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("chebyshev_polynomial_v_cuda", chebyshev_polynomial_v_forward);
}

void chebyshev_polynomial_w_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("chebyshev_polynomial_w_cuda", chebyshev_polynomial_w_forward);
}

void hermite_polynomial_h_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("hermite_polynomial_h_cuda", hermite_polynomial_h_forward);
}

void hermite_polynomial_he_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("hermite_polynomial_he_cuda", hermite_polynomial_he_forward);
}

void laguerre_polynomial_l_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("laguerre_polynomial_l_cuda", laguerre_polynomial_l_forward);
}

void legendre_polynomial_p_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("legendre_polynomial_p_cuda", legendre_polynomial_p_forward);
}

void shifted_chebyshev_polynomial_t_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("shifted_chebyshev_polynomial_t_cuda", shifted_chebyshev_polynomial_t_forward);
}

void shifted_chebyshev_polynomial_u_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("shifted_chebyshev_polynomial_u_cuda", shifted_chebyshev_polynomial_u_forward);
}

void shifted_chebyshev_polynomial_v_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("shifted_chebyshev_polynomial_v_cuda", shifted_chebyshev_polynomial_v_forward);
}

void shifted_chebyshev_polynomial_w_kernel(TensorIteratorBase& iter) {
  GPU_POLYNOMIAL("shifted_chebyshev_polynomial_w_cuda", shifted_chebyshev_polynomial_w_forward);
}

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
