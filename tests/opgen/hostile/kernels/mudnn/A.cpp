namespace at::musa {

Tensor Nonzero(const Tensor& self, bool as_tuple) { return self; }

TORCH_IMPL_FUNC(MusaCumsum)
(const Tensor& self, int64_t dim, ScalarType dtype, const Tensor& result) {}

TORCH_META_FUNC(cumprod)(const Tensor& self, int64_t dim) {}
TORCH_IMPL_FUNC(MusaCumprod)
(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype, const Tensor& result) {}

bool IsNan(const Tensor& self) { return self; }
Tensor Relu(const Tensor& self = {}) { return self; }
Tensor& AddOut(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  return out;
}

}  // namespace at::musa
