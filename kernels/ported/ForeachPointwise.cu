// The rest of what torch.optim does to lists of tensors: roots, lerp, addcmul and addcdiv.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <torch_musa/ops/_foreach_addcdiv_native.h>
#include <torch_musa/ops/_foreach_addcmul_native.h>
#include <torch_musa/ops/_foreach_lerp_native.h>
#include <torch_musa/ops/_foreach_neg_native.h>
#include <torch_musa/ops/_foreach_sqrt_native.h>

#include <ATen/native/Lerp.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/ported/Foreach.cuh"

namespace at::musa {

using namespace foreach;

namespace {

template <typename T>
struct SquareRoot {
  __device__ T operator()(T x) const { return std::sqrt(x); }
};

template <typename T>
struct Lerp {
  __device__ T operator()(T self, T end, T weight) const { return native::lerp(self, end, weight); }
};

}  // namespace

std::vector<Tensor> ForeachSqrt(TensorList self) {
  if (!fits({self})) {
    return native::foreach_tensor_sqrt_slow(self);
  }
  return computed<native::UnaryOpFunctor, SquareRoot>(std::array{self});
}

void ForeachSqrt_(TensorList self) {
  if (!fits({self})) {
    return native::foreach_tensor_sqrt_slow_(self);
  }
  launch<native::UnaryOpFunctor, SquareRoot>(std::array{self}, written(self));
}

std::vector<Tensor> ForeachNeg(TensorList self) {
  if (!fits({self})) {
    return native::foreach_tensor_neg_slow(self);
  }
  return computed<native::UnaryOpFunctor, std::negate>(std::array{self});
}

void ForeachNeg_(TensorList self) {
  if (!fits({self})) {
    return native::foreach_tensor_neg_slow_(self);
  }
  launch<native::UnaryOpFunctor, std::negate>(std::array{self}, written(self));
}

std::vector<Tensor> ForeachLerpScalar(TensorList self, TensorList tensors1, const Scalar& weight) {
  if (!fits({self, tensors1}, weight)) {
    return native::foreach_tensor_lerp_list_kernel_slow(self, tensors1, weight);
  }
  return computed<native::TernaryOpScalarFunctor, Lerp>(std::array{self, tensors1}, weight);
}

void ForeachLerpScalar_(TensorList self, TensorList tensors1, const Scalar& weight) {
  if (!fits({self, tensors1}, weight)) {
    return native::foreach_tensor_lerp_list_kernel_slow_(self, tensors1, weight);
  }
  launch<native::TernaryOpScalarFunctor, Lerp>(std::array{self, tensors1}, written(self), weight);
}

std::vector<Tensor> ForeachAddcmulScalar(TensorList self, TensorList tensor1, TensorList tensor2,
                                         const Scalar& value) {
  if (!fits({self, tensor1, tensor2}, value)) {
    return native::foreach_tensor_addcmul_scalar_slow(self, tensor1, tensor2, value);
  }
  return computed<native::PointwiseOpScalarFunctor, std::multiplies>(
      std::array{self, tensor1, tensor2}, value);
}

void ForeachAddcmulScalar_(TensorList self, TensorList tensor1, TensorList tensor2,
                           const Scalar& value) {
  if (!fits({self, tensor1, tensor2}, value)) {
    return native::foreach_tensor_addcmul_scalar_slow_(self, tensor1, tensor2, value);
  }
  launch<native::PointwiseOpScalarFunctor, std::multiplies>(std::array{self, tensor1, tensor2},
                                                            written(self), value);
}

std::vector<Tensor> ForeachAddcmulScalarList(TensorList self, TensorList tensor1,
                                             TensorList tensor2, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self, tensor1, tensor2}, scalars)) {
    return native::foreach_tensor_addcmul_scalarlist_slow(self, tensor1, tensor2, scalars);
  }
  return computed<native::PointwiseOpScalarListFunctor, std::multiplies>(
      std::array{self, tensor1, tensor2}, scalars);
}

void ForeachAddcmulScalarList_(TensorList self, TensorList tensor1, TensorList tensor2,
                               ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self, tensor1, tensor2}, scalars)) {
    return native::foreach_tensor_addcmul_scalarlist_slow_(self, tensor1, tensor2, scalars);
  }
  launch<native::PointwiseOpScalarListFunctor, std::multiplies>(std::array{self, tensor1, tensor2},
                                                                written(self), scalars);
}

std::vector<Tensor> ForeachAddcdivScalar(TensorList self, TensorList tensor1, TensorList tensor2,
                                         const Scalar& value) {
  if (!fits({self, tensor1, tensor2}, value)) {
    return native::foreach_tensor_addcdiv_scalar_slow(self, tensor1, tensor2, value);
  }
  return computed<native::PointwiseOpScalarFunctor, std::divides>(
      std::array{self, tensor1, tensor2}, value);
}

void ForeachAddcdivScalar_(TensorList self, TensorList tensor1, TensorList tensor2,
                           const Scalar& value) {
  if (!fits({self, tensor1, tensor2}, value)) {
    return native::foreach_tensor_addcdiv_scalar_slow_(self, tensor1, tensor2, value);
  }
  launch<native::PointwiseOpScalarFunctor, std::divides>(std::array{self, tensor1, tensor2},
                                                         written(self), value);
}

std::vector<Tensor> ForeachAddcdivScalarList(TensorList self, TensorList tensor1,
                                             TensorList tensor2, ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self, tensor1, tensor2}, scalars)) {
    return native::foreach_tensor_addcdiv_scalarlist_slow(self, tensor1, tensor2, scalars);
  }
  return computed<native::PointwiseOpScalarListFunctor, std::divides>(
      std::array{self, tensor1, tensor2}, scalars);
}

void ForeachAddcdivScalarList_(TensorList self, TensorList tensor1, TensorList tensor2,
                               ArrayRef<Scalar> scalars) {
  if (!fits_with_list({self, tensor1, tensor2}, scalars)) {
    return native::foreach_tensor_addcdiv_scalarlist_slow_(self, tensor1, tensor2, scalars);
  }
  launch<native::PointwiseOpScalarListFunctor, std::divides>(std::array{self, tensor1, tensor2},
                                                             written(self), scalars);
}

}  // namespace at::musa
