namespace at::native {
static void scalar_kernel(TensorIteratorBase& iter, const Scalar& weight) {}
REGISTER_DISPATCH(lerp_kernel_scalar_weight, &scalar_kernel)
}  // namespace at::native
