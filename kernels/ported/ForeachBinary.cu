// Lists of tensors added, multiplied and divided: by each other, by a number, by one for each.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <torch_musa/ops/_foreach_add_native.h>
#include <torch_musa/ops/_foreach_div_native.h>
#include <torch_musa/ops/_foreach_mul_native.h>

#include <array>
#include <functional>
#include <vector>

#include "kernels/ported/Foreach.cuh"

namespace at::musa {

using namespace foreach;

std::vector<Tensor> ForeachAddList(TensorList self, TensorList other, const Scalar& alpha) {
  if (!fits({self, other}, alpha)) {
    return native::foreach_tensor_add_list_kernel_slow(self, other, alpha);
  }
  return computed<native::BinaryOpListAlphaFunctor, std::plus>(std::array{self, other}, alpha);
}

void ForeachAddList_(TensorList self, TensorList other, const Scalar& alpha) {
  if (!fits({self, other}, alpha)) {
    return native::foreach_tensor_add_list_kernel_slow_(self, other, alpha);
  }
  launch<native::BinaryOpListAlphaFunctor, std::plus>(std::array{self, other}, written(self),
                                                      alpha);
}

std::vector<Tensor> ForeachAddScalar(TensorList self, const Scalar& scalar) {
  if (!fits({self}, scalar)) {
    return native::foreach_tensor_add_scalar_kernel_slow(self, scalar);
  }
  return computed<native::BinaryOpScalarFunctor, std::plus>(std::array{self}, scalar);
}

void ForeachAddScalar_(TensorList self, const Scalar& scalar) {
  if (!fits({self}, scalar)) {
    return native::foreach_tensor_add_scalar_kernel_slow_(self, scalar);
  }
  launch<native::BinaryOpScalarFunctor, std::plus>(std::array{self}, written(self), scalar);
}

std::vector<Tensor> ForeachAddScalarList(TensorList self, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self}, scalars)) {
    return native::foreach_tensor_add_scalarlist_kernel_slow(self, scalars);
  }
  return computed<native::BinaryOpScalarListFunctor, std::plus>(std::array{self}, scalars);
}

void ForeachAddScalarList_(TensorList self, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self}, scalars)) {
    return native::foreach_tensor_add_scalarlist_kernel_slow_(self, scalars);
  }
  launch<native::BinaryOpScalarListFunctor, std::plus>(std::array{self}, written(self), scalars);
}

std::vector<Tensor> ForeachMulList(TensorList self, TensorList other) {
  if (!fits({self, other})) {
    return native::foreach_tensor_mul_list_kernel_slow(self, other);
  }
  return computed<native::BinaryOpListAlphaFunctor, std::multiplies>(std::array{self, other},
                                                                     Scalar(1));
}

void ForeachMulList_(TensorList self, TensorList other) {
  if (!fits({self, other})) {
    return native::foreach_tensor_mul_list_kernel_slow_(self, other);
  }
  launch<native::BinaryOpListAlphaFunctor, std::multiplies>(std::array{self, other}, written(self),
                                                            Scalar(1));
}

std::vector<Tensor> ForeachMulScalar(TensorList self, const Scalar& scalar) {
  if (!fits({self}, scalar)) {
    return native::foreach_tensor_mul_scalar_kernel_slow(self, scalar);
  }
  return computed<native::BinaryOpScalarFunctor, std::multiplies>(std::array{self}, scalar);
}

void ForeachMulScalar_(TensorList self, const Scalar& scalar) {
  if (!fits({self}, scalar)) {
    return native::foreach_tensor_mul_scalar_kernel_slow_(self, scalar);
  }
  launch<native::BinaryOpScalarFunctor, std::multiplies>(std::array{self}, written(self), scalar);
}

std::vector<Tensor> ForeachMulScalarList(TensorList self, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self}, scalars)) {
    return native::foreach_tensor_mul_scalarlist_kernel_slow(self, scalars);
  }
  return computed<native::BinaryOpScalarListFunctor, std::multiplies>(std::array{self}, scalars);
}

void ForeachMulScalarList_(TensorList self, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self}, scalars)) {
    return native::foreach_tensor_mul_scalarlist_kernel_slow_(self, scalars);
  }
  launch<native::BinaryOpScalarListFunctor, std::multiplies>(std::array{self}, written(self),
                                                             scalars);
}

std::vector<Tensor> ForeachDivList(TensorList self, TensorList other) {
  if (!fits({self, other})) {
    return native::foreach_tensor_div_list_kernel_slow(self, other);
  }
  return computed<native::BinaryOpListAlphaFunctor, std::divides>(std::array{self, other},
                                                                  Scalar(1));
}

void ForeachDivList_(TensorList self, TensorList other) {
  if (!fits({self, other})) {
    return native::foreach_tensor_div_list_kernel_slow_(self, other);
  }
  launch<native::BinaryOpListAlphaFunctor, std::divides>(std::array{self, other}, written(self),
                                                         Scalar(1));
}

std::vector<Tensor> ForeachDivScalar(TensorList self, const Scalar& scalar) {
  if (!fits({self}, scalar)) {
    return native::foreach_tensor_div_scalar_kernel_slow(self, scalar);
  }
  return computed<native::BinaryOpScalarFunctor, std::divides>(std::array{self}, scalar);
}

void ForeachDivScalar_(TensorList self, const Scalar& scalar) {
  if (!fits({self}, scalar)) {
    return native::foreach_tensor_div_scalar_kernel_slow_(self, scalar);
  }
  launch<native::BinaryOpScalarFunctor, std::divides>(std::array{self}, written(self), scalar);
}

std::vector<Tensor> ForeachDivScalarList(TensorList self, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self}, scalars)) {
    return native::foreach_tensor_div_scalarlist_kernel_slow(self, scalars);
  }
  return computed<native::BinaryOpScalarListFunctor, std::divides>(std::array{self}, scalars);
}

void ForeachDivScalarList_(TensorList self, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self}, scalars)) {
    return native::foreach_tensor_div_scalarlist_kernel_slow_(self, scalars);
  }
  launch<native::BinaryOpScalarListFunctor, std::divides>(std::array{self}, written(self), scalars);
}

}  // namespace at::musa
