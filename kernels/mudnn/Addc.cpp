#include "kernels/mudnn/Operands.h"

#include <torch_musa/ops/addcdiv_native.h>
#include <torch_musa/ops/addcmul_native.h>

namespace at::musa {

TORCH_IMPL_FUNC(MusaAddcmul)
(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value,
 const Tensor& out) {
  if (isComplexType(common_dtype())) {
    out.copy_(self.add(tensor1.mul(tensor2), value));  // no complex types in muDNN
    return;
  }
  RunTernary(*this, TernaryMode::ADDCMUL_ALPHA, {.name = "addcmul_cpu_out", .alpha = value});
}

TORCH_IMPL_FUNC(MusaAddcdiv)
(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value,
 const Tensor& out) {
  if (isComplexType(common_dtype())) {
    out.copy_(self.add(tensor1.div(tensor2), value));
    return;
  }
  RunTernary(*this, TernaryMode::ADDCDIV_ALPHA, {.name = "addcdiv_cpu_out", .alpha = value});
}

}  // namespace at::musa
