// The driver under gpu_kernel on the host: it owns everything of a launch that does not depend on
// the functor (operands, casts, iteration, threads, stream), so that a new kernel costs the
// compiler two small loops.
#pragma once

#include <ATen/native/TensorIterator.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>

namespace at::native::host_loops {

/// Applies a functor to `n` elements. Operand i (outputs first) starts at data[i]; its next element
/// lies strides[i] bytes further. Called from several threads at once.
using InnerLoop = std::function<void(char* const* data, const int64_t* strides, int64_t n)>;

enum class CpuScalars : bool { Refused, Allowed };

/// Runs `loop` over all elements of `iter`, in the order of the current stream of its device. The
/// loop sees operand i as `types[i]`; operands that the iterator holds in another dtype are cast on
/// the way. Empty `types` means "as they are, of any dtype". With CpuScalars::Allowed an input may
/// be a one-element CPU tensor.
void launch(TensorIteratorBase& iter, c10::ArrayRef<c10::ScalarType> types, CpuScalars scalars,
            InnerLoop loop);

}  // namespace at::native::host_loops
