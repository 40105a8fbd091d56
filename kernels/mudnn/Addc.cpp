#include "kernels/mudnn/Operands.h"

#include <torch_musa/ops/addcdiv_native.h>
#include <torch_musa/ops/addcmul_native.h>

namespace at::musa {

TORCH_IMPL_FUNC(MusaAddcmul)
(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value,
 const Tensor& out) {
  if (isComplexType(common_dtype())) {
    // No complex types in muDNN. Both factors are cast, as a 0-dim one has no say in a promotion.
    const Tensor term = tensor1.to(common_dtype()).mul(tensor2.to(common_dtype()));
    out.copy_(self.add(term, CheckedScalar(value, common_dtype())));
    return;
  }
  RunTernary(*this, TernaryMode::ADDCMUL_ALPHA, {.name = "addcmul_cpu_out", .alpha = value});
}

TORCH_IMPL_FUNC(MusaAddcdiv)
(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value,
 const Tensor& out) {
  if (isComplexType(common_dtype())) {
    const Tensor term = tensor1.to(common_dtype()).div(tensor2.to(common_dtype()));
    out.copy_(self.add(term, CheckedScalar(value, common_dtype())));
    return;
  }
  RunTernary(*this, TernaryMode::ADDCDIV_ALPHA, {.name = "addcdiv_cpu_out", .alpha = value});
}

}  // namespace at::musa
