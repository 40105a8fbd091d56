// linalg_cross, hung on PyTorch's stub, which gets both operands expanded to the result's sizes.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Cross.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

// One component of all vectors: out[i] = a[j] * b[k] - a[k] * b[j].
void cross_component(const Tensor& out, const Tensor& a, const Tensor& b, int64_t dim, int64_t i) {
  const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
  auto iter = TensorIteratorConfig()
                  .add_owned_output(out.select(dim, i))
                  .add_owned_const_input(a.select(dim, j))
                  .add_owned_const_input(b.select(dim, k))
                  .add_owned_const_input(a.select(dim, k))
                  .add_owned_const_input(b.select(dim, j))
                  .resize_outputs(false)
                  .build();
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(opmath_dtype(iter), "cross_cuda", [&] {
    gpu_kernel(iter,
               [] GPU_LAMBDA(scalar_t a_j, scalar_t b_k, scalar_t a_k, scalar_t b_j) -> scalar_t {
                 return a_j * b_k - a_k * b_j;
               });
  });
}

void cross_kernel(const Tensor& out, const Tensor& a, const Tensor& b, const int64_t dim) {
  // The components of the result are written one after the other, while all of the operands' are
  // still being read.
  const Tensor first = out.is_alias_of(a) ? a.clone() : a;
  const Tensor second = out.is_alias_of(b) ? b.clone() : b;
  for (int64_t component = 0; component < 3; ++component) {
    cross_component(out, first, second, dim, component);
  }
}

}  // namespace

REGISTER_DISPATCH(cross_stub, &cross_kernel)

}  // namespace at::native
