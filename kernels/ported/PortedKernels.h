// Kernels of kernels/ported that other kernel files call by name. Each runs on the current stream
// of its iterator's device and may have inputs that are CPU scalars, unless it says otherwise.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace at {
struct TensorIterator;
struct TensorIteratorBase;
}  // namespace at

namespace at::musa {

/// out = in: one output, one input, of any two dtypes that convert. Moves memory as it lies:
/// conjugate and negative bits are the caller's business. No CPU scalars.
void copy_kernel(TensorIteratorBase& iter);

// Complex arithmetic, which muDNN has no types for. The iterator's common dtype must be complex.
/// out = self + alpha * other
void add_kernel(TensorIteratorBase& iter, const Scalar& alpha);
/// out = self * other
void mul_kernel(TensorIteratorBase& iter);
/// out = self / other
void div_true_kernel(TensorIteratorBase& iter);
/// out (bool) = self == other
void eq_kernel(TensorIteratorBase& iter);
/// out (bool) = self != other
void ne_kernel(TensorIteratorBase& iter);
/// out = value; complex only, no inputs.
void fill_kernel(TensorIteratorBase& iter, const Scalar& value);
/// out = condition ? self : other; condition is bool or uint8, the rest complex of one dtype.
void where_kernel(TensorIteratorBase& iter);

/// out = self + alpha * other, computed in float: two tensors on the device whose dtypes differ and
/// whose common dtype is float. No CPU scalars.
void mixed_add_kernel(TensorIteratorBase& iter, const Scalar& alpha);

// Complex functions: one output, one input of a complex common dtype. No CPU scalars.
void exp_kernel(TensorIteratorBase& iter);
void log_kernel(TensorIteratorBase& iter);
void sqrt_kernel(TensorIteratorBase& iter);
void rsqrt_kernel(TensorIteratorBase& iter);
void reciprocal_kernel(TensorIteratorBase& iter);
void sigmoid_kernel(TensorIteratorBase& iter);
void tanh_kernel(TensorIteratorBase& iter);
/// out = base ** exponent, of complex common dtype; either may be a CPU scalar.
void pow_kernel(TensorIteratorBase& iter);

/// out = a @ b for (n, k) @ (k, m) or (batch, n, k) @ (batch, k, m) of one dtype: integral, float,
/// double or complex. Any strides, any of the sizes may be zero; `out` has its final size and
/// overlaps neither operand.
void matmul_kernel(const Tensor& out, const Tensor& a, const Tensor& b);

/// A reduction with two outputs of the input's dtype: variance (its root with `take_sqrt`) over
/// n - correction, and mean. Floating dtypes; nothing is empty.
void moments_kernel(TensorIterator& iter, double correction, bool take_sqrt);

}  // namespace at::musa
