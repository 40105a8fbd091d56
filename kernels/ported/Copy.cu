// Strided copies and casts between every pair of dtypes.
#include <ATen/Dispatch_v2.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include "kernels/ported/PortedKernels.h"

namespace at::musa {
namespace {

template <typename word_t>
void move_words(TensorIteratorBase& iter) {
  native::gpu_kernel_opaque(iter, [] GPU_LAMBDA(word_t x) -> word_t { return x; });
}

// Of one dtype: only the size of an element matters.
void move(TensorIteratorBase& iter) {
  switch (iter.element_size(0)) {
    case 1: return move_words<uint8_t>(iter);
    case 2: return move_words<uint16_t>(iter);
    case 4: return move_words<uint32_t>(iter);
    case 8: return move_words<uint64_t>(iter);
    case 16: return move_words<c10::complex<double>>(iter);
    default: TORCH_CHECK(false, "cannot copy elements of ", iter.element_size(0), " bytes (", iter.dtype(0), ")");
  }
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
