// Implementations and meta functions for the structured rules. Each leaves a trace that PyTorch's
// own would not: a message, or a count.
#include <torch_musa/ops/_softmax_native.h>
#include <torch_musa/ops/cumprod_native.h>
#include <torch_musa/ops/cumsum_native.h>
#include <torch_musa/ops/index_copy_native.h>
#include <torch_musa/ops/renorm_native.h>
#include <torch_musa/ops/tril_native.h>

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/renorm.h>
#include <ATen/ops/tril.h>

namespace at::musa {
namespace {

// Where each dtype's results come from does not matter here: the CPU knows them all.
void from_cpu(const Tensor& out, const Tensor& result) { out.copy_(result); }

}  // namespace

TORCH_META_FUNC(tril)(const Tensor& self, int64_t diagonal) {
  TORCH_CHECK(self.dim() >= 2, "rule: tril of a matrix");
  set_output_raw_strided(0, self.sizes(), {}, self.options());
  TORCH_CHECK(outputs_declared == 1, "rule: the base class saw ", outputs_declared, " outputs");
}

TORCH_IMPL_FUNC(RuleTril)(const Tensor& self, int64_t diagonal, const Tensor& out) {
  from_cpu(out, at::tril(self.cpu(), diagonal));
}

TORCH_PRECOMPUTE_META_FUNC(renorm)
(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  set_output_raw_strided(0, self.sizes(), {}, self.options());
  return TORCH_PRECOMPUTE_STRUCT(renorm)().set_axis(maybe_wrap_dim(dim, self.dim()));
}

TORCH_IMPL_FUNC(RuleRenorm)
(const Tensor& self, const Scalar& p, int64_t axis, const Scalar& maxnorm, const Tensor& out) {
  TORCH_CHECK(axis >= 0, "rule: the kernel gets the wrapped dim");
  from_cpu(out, at::renorm(self.cpu(), p, axis, maxnorm));
}

TORCH_META_FUNC(cumsum)(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  set_output_raw_strided(0, self.sizes(), {},
                         self.options().dtype(dtype.value_or(self.scalar_type())));
  TORCH_CHECK(outputs_declared == 1, "rule: the base class saw ", outputs_declared, " outputs");
}

TORCH_IMPL_FUNC(cumsum_out)
(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype, const Tensor& out) {
  // unlike PyTorch's, which widens integers
  TORCH_CHECK(dtype.has_value() || out.scalar_type() == self.scalar_type(), "rule: cumsum's dtype");
  from_cpu(out, at::cumsum(self.cpu(), dim, dtype));
}

TORCH_PRECOMPUTE_META_FUNC(cumprod)
(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  set_output_raw_strided(0, self.sizes(), {},
                         self.options().dtype(dtype.value_or(self.scalar_type())));
  return TORCH_PRECOMPUTE_STRUCT(cumprod)()
      .set_axis(maybe_wrap_dim(dim, self.dim()))
      .set_rank(self.dim());
}

TORCH_IMPL_FUNC(cumprod_out)
(const Tensor& self, int64_t axis, std::optional<ScalarType> dtype, int64_t rank,
 const Tensor& out) {
  TORCH_CHECK(axis >= 0 && rank == self.dim(), "rule: wrapped dim and added element");
  from_cpu(out, at::cumprod(self.cpu(), axis, dtype));
}

TORCH_PRECOMPUTE_META_FUNC(_softmax)(const Tensor& self, int64_t dim, bool half_to_float) {
  set_output_raw_strided(0, self.sizes(), {}, self.options());
  TORCH_CHECK(outputs_declared == 1, "rule: the base class saw ", outputs_declared, " outputs");
  return TORCH_PRECOMPUTE_STRUCT(_softmax)().set_axis(maybe_wrap_dim(dim, self.dim()));
}

TORCH_IMPL_FUNC(softmax_cuda_out)
(const Tensor& self, int64_t axis, bool half_to_float, const Tensor& out) {
  TORCH_CHECK(axis >= 0, "rule: the kernel gets the wrapped dim");
  from_cpu(out, at::_softmax(self.cpu(), axis, half_to_float));
}

TORCH_META_FUNC(index_copy)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}

TORCH_IMPL_FUNC(RuleIndexCopy)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Tensor& out) {
  // upstream's meta function would have wrapped it
  TORCH_CHECK(dim < 0, "rule: the kernel gets dim as it was given");
  from_cpu(out, at::index_copy(self.cpu(), dim, index.cpu(), source.cpu()));
}

}  // namespace at::musa
