namespace at::musa {
Tensor Relu(const Tensor& self) { return self; }
}  // namespace at::musa
