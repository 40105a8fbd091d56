// gpu_kernel for functors whose types need only have the size of the operands'.
#pragma once

#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

#include <array>

#include "torch_musa/csrc/core/TorchCompat.h"

namespace at::musa {

/// out = f(in) for every element, on the current stream; func_t takes and returns word_t. Both
/// operands have elements of sizeof(word_t) bytes, of any dtype (not checked).
template <typename word_t, typename func_t>
void opaque_kernel(TensorIteratorBase& iter, const func_t& f) {
#if defined(OPGEN_HOST_LOOPS) || MUSA_HAS_GPU_KERNEL_OPAQUE
  native::gpu_kernel_opaque(iter, f);
#else
  // Older headers insist on the functor's types, so this goes one step lower than gpu_kernel.
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto& part : iter.with_32bit_indexing()) {
      opaque_kernel<word_t>(part, f);
    }
    return;
  }
  std::array<char*, 2> data{static_cast<char*>(iter.data_ptr(0)),
                            static_cast<char*>(iter.data_ptr(1))};
  if (iter.is_contiguous()) {
    return native::launch_vectorized_kernel(iter.numel(), f, data);
  }
  const auto offsets = ::make_offset_calculator<2>(iter);
  constexpr int per_thread = sizeof(word_t) >= 4 ? 2 : 4;
  native::launch_legacy_kernel<128, per_thread>(iter.numel(), [=] GPU_LAMBDA(int i) {
    const auto o = offsets.get(i);
    *reinterpret_cast<word_t*>(data[0] + o[0]) =
        f(*reinterpret_cast<const word_t*>(data[1] + o[1]));
  });
#endif
}

}  // namespace at::musa
