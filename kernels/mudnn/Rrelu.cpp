// Leaky relu whose slope is drawn anew for every element that is not positive.
#include <ATen/core/Tensor.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mul.h>
#include <torch_musa/ops/rrelu_with_noise_native.h>

namespace at::musa {
namespace {

// Fills `noise` with each element's slope, 1 for positive ones (and nan), and returns it; outside
// training there is one slope for all, and `noise` stays as it is.
void draw_slopes(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper,
                 std::optional<Generator> generator) {
  TORCH_CHECK(self.sizes() == noise.sizes(),
              "rrelu_with_noise: noise must have the sizes of self, ", self.sizes(), ", got ",
              noise.sizes());
  TORCH_CHECK(self.scalar_type() == noise.scalar_type(), "rrelu_with_noise: noise must be ",
              self.scalar_type(), ", got ", noise.scalar_type());
  noise.uniform_(lower.toDouble(), upper.toDouble(), std::move(generator));
  noise.masked_fill_(self.le(0).logical_not_(), 1);
}

Scalar mean_slope(const Scalar& lower, const Scalar& upper) {
  return (lower.toDouble() + upper.toDouble()) / 2;
}

}  // namespace

Tensor& RreluWithNoiseOut(const Tensor& self, Tensor& noise, const Scalar& lower,
                          const Scalar& upper, bool training, std::optional<Generator> generator,
                          Tensor& out) {
  if (!training) {
    return at::leaky_relu_out(out, self, mean_slope(lower, upper));
  }
  draw_slopes(self, noise, lower, upper, std::move(generator));
  return at::mul_out(out, self, noise);
}

Tensor RreluWithNoise(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper,
                      bool training, std::optional<Generator> generator) {
  if (!training) {
    return at::leaky_relu(self, mean_slope(lower, upper));
  }
  draw_slopes(self, noise, lower, upper, std::move(generator));
  return self.mul(noise);
}

Tensor& RreluWithNoise_(Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper,
                        bool training, std::optional<Generator> generator) {
  return RreluWithNoiseOut(self, noise, lower, upper, training, std::move(generator), self);
}

}  // namespace at::musa
