#include <torch_musa/ops/roll_native.h>

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cat.h>

namespace at::musa {
namespace {

Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  const int64_t size = self.size(dim);
  const int64_t start = ((-shift % size) + size) % size;
  if (start == 0) return self.clone();
  return at::cat({self.narrow(dim, start, size - start), self.narrow(dim, 0, start)}, dim);
}

}  // namespace

Tensor Roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  const bool flat = dims.empty() && shifts.size() == 1;
  TORCH_CHECK(flat || shifts.size() == dims.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  if (self.numel() == 0) return self.clone(MemoryFormat::Contiguous);
  if (flat) return roll_one(self.reshape({-1}), shifts[0], 0).view(self.sizes());
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    result = roll_one(result, shifts[i], maybe_wrap_dim(dims[i], self.dim()));
  }
  return result;
}

}  // namespace at::musa
