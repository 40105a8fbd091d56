// Strided copies and casts between every pair of dtypes.
#include <ATen/Dispatch_v2.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/OpaqueKernel.cuh"
#include "kernels/ported/PortedKernels.h"

namespace at::musa {
namespace {

// Of one dtype: only the size of an element matters.
void move(TensorIteratorBase& iter) {
  DISPATCH_WORD(iter.element_size(0), [&] {
    opaque_kernel<word_t>(iter, [] GPU_LAMBDA(word_t x) -> word_t { return x; });
  });
}

}  // namespace

void copy_kernel(TensorIteratorBase& iter) {
  TORCH_INTERNAL_ASSERT(iter.ntensors() == 2);
  if (iter.dtype(0) == iter.dtype(1)) {
    return move(iter);
  }
  // The functor is the identity on the output's type; gpu_kernel casts the input to it.
  AT_DISPATCH_V2(iter.dtype(0), "copy_", AT_WRAP([&] {
                   native::gpu_kernel(iter, [] GPU_LAMBDA(scalar_t x) -> scalar_t { return x; });
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 AT_EXPAND(AT_FLOAT8_TYPES), kBool, kHalf, kBFloat16, kComplexHalf);
}

}  // namespace at::musa
