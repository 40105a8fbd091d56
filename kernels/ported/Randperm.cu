// randperm: the order that sorts random keys. Two equal keys among 2^63 are rarer than a failing
// disk.
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <torch_musa/ops/randperm_native.h>

namespace at::musa {

Tensor& RandpermGeneratorOut(int64_t n, std::optional<Generator> generator, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  TORCH_CHECK(!generator.has_value() || out.device() == generator->device(), "Expected a '",
              out.device(), "' generator device but found '", generator->device(), "'");
  native::check_supported_max_int_with_precision(n, out);
  out.resize_({n});
  if (n == 0) {
    return out;
  }
  const Tensor keys = at::empty({n}, out.options().dtype(kLong)).random_(generator);
  out.copy_(std::get<1>(at::sort(keys, /*stable=*/std::optional<bool>(true), /*dim=*/0)));
  return out;
}

}  // namespace at::musa
