// Running sums on a logarithmic scale, made of logaddexp (BinaryMathKernels.cu).
#include <torch_musa/ops/_logcumsumexp_native.h>

#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>

namespace at::musa {
namespace {

// After the step of length s, element i holds the sum of the last 2s elements up to i: as many
// steps as the length has bits, each over all elements at once (Hillis and Steele, Data Parallel
// Algorithms, 1986).
void add_up(const Tensor& sums, int64_t dim) {
  const int64_t size = sums.size(dim);
  for (int64_t step = 1; step < size; step *= 2) {
    const Tensor before = sums.narrow(dim, 0, size - step).clone();
    Tensor after = sums.narrow(dim, step, size - step);
    at::logaddexp_out(after, after, before);
  }
}

// The branch that a complex logarithm comes to lie on depends on the order: one after the other, as
// PyTorch's kernels do it.
void add_up_in_order(const Tensor& sums, int64_t dim) {
  for (int64_t i = 1; i < sums.size(dim); ++i) {
    Tensor element = sums.select(dim, i);
    at::logaddexp_out(element, element, sums.select(dim, i - 1));
  }
}

}  // namespace

// float16 and bfloat16 are summed up in float32.
Tensor& LogCumSumExpOut(const Tensor& self, int64_t dim, Tensor& out) {
  const ScalarType dtype = self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(isFloatingType(dtype) || isComplexType(dtype),
                              "\"logcumsumexp\" not implemented for '", toString(dtype), "'");
  dim = maybe_wrap_dim(dim, self.dim());
  native::resize_output(out, self.sizes());
  if (self.dim() == 0 || self.numel() == 0) {
    return out.copy_(self);
  }
  const Tensor sums = self.to(toOpMathType(dtype), /*non_blocking=*/false, /*copy=*/true);
  if (sums.is_complex()) {
    add_up_in_order(sums, dim);
  } else {
    add_up(sums, dim);
  }
  return out.copy_(sums);
}

Tensor LogCumSumExp(const Tensor& self, int64_t dim) {
  Tensor out = at::empty_like(self, MemoryFormat::Contiguous);
  return LogCumSumExpOut(self, dim, out);
}

}  // namespace at::musa
