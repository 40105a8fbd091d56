// Trigonometric and hyperbolic functions and their inverses.
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

void sin_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("sin_cuda", std::sin(x));
}

void cos_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("cos_cuda", std::cos(x));
}

void tan_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("tan_cuda", std::tan(x));
}

void asin_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("asin_cuda", std::asin(x));
}

void acos_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("acos_cuda", std::acos(x));
}

void atan_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("atan_cuda", std::atan(x));
}

void sinh_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("sinh_cuda", std::sinh(x));
}

void cosh_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("cosh_cuda", std::cosh(x));
}

void asinh_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("asinh_cuda", std::asinh(x));
}

void acosh_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("acosh_cuda", std::acosh(x));
}

void atanh_kernel(TensorIteratorBase& iter) {
  GPU_UNARY_FLOATING_AND_COMPLEX("atanh_cuda", std::atanh(x));
}

}  // namespace

REGISTER_DISPATCH(sin_stub, &sin_kernel)
REGISTER_DISPATCH(cos_stub, &cos_kernel)
REGISTER_DISPATCH(tan_stub, &tan_kernel)
REGISTER_DISPATCH(asin_stub, &asin_kernel)
REGISTER_DISPATCH(acos_stub, &acos_kernel)
REGISTER_DISPATCH(atan_stub, &atan_kernel)
REGISTER_DISPATCH(sinh_stub, &sinh_kernel)
REGISTER_DISPATCH(cosh_stub, &cosh_kernel)
REGISTER_DISPATCH(asinh_stub, &asinh_kernel)
REGISTER_DISPATCH(acosh_stub, &acosh_kernel)
REGISTER_DISPATCH(atanh_stub, &atanh_kernel)

}  // namespace at::native
