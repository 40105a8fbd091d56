#pragma once

// The layer between TensorIterator and muDNN's elementwise classes, shared by every kernel of this
// folder.
//
// PyTorch's elementwise operators accept what muDNN does not: rank 0 and ranks above 8, operands of
// several dtypes, scalars that live on the CPU, bool arithmetic, outputs of another dtype, empty
// tensors. An op says which muDNN mode it is and in which dtype it computes; the rest happens here.
// The common case, operands of the compute dtype on the device, allocates and copies nothing: the
// descriptors point into the operands, in the iterator's coalesced layout.

#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/TensorIterator.h>
#include <c10/core/Scalar.h>
#include <c10/util/SmallVector.h>

#include "torch_musa/csrc/aten/utils/Utils.h"

namespace at::musa {

using UnaryMode = ::musa::dnn::Unary::Mode;
using BinaryMode = ::musa::dnn::Binary::Mode;
using TernaryMode = ::musa::dnn::Ternary::Mode;

constexpr int64_t kMaxMudnnRank = 8;

/// Shapes and strides on the stack, in elements, slowest dimension first.
using DimArray = c10::SmallVector<int64_t, kMaxMudnnRank>;

/// Describes `data` to muDNN; an empty shape becomes {1}. Strides of size-1 dimensions are
/// normalized to 1, since muDNN takes a 0 there for a broadcast.
muTensor MakeMUTensor(const void* data, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides);

/// The same for dense memory in row-major order.
muTensor MakeContiguousMUTensor(const void* data, ScalarType dtype, IntArrayRef sizes);

/// A one-element tensor on `device`, written by muDNN's Fill: no host-to-device copy, hence no
/// synchronization.
Tensor DeviceScalar(const Scalar& value, ScalarType dtype, Device device);

/// Sets Fill's value through the overload that `dtype` needs.
void SetValue(::musa::dnn::Fill& fill, const Scalar& value, ScalarType dtype);

/// NotImplementedError, worded as AT_DISPATCH words it on the CPU, unless muDNN computes in
/// `dtype`. BOOL is not a compute dtype: an op that means it computes in kByte (see IterOperands).
void CheckComputeType(ScalarType dtype, const char* op);

/// The dtype in which a comparison, MAX, MIN or MUL computes: the common dtype, but kByte for
/// bools.
inline ScalarType BoolAsByte(const TensorIteratorBase& iter) {
  return iter.common_dtype() == kBool ? kByte : iter.common_dtype();
}

/// `value` as a Scalar of `dtype`; throws as Scalar::to does when it does not fit.
Scalar CheckedScalar(const Scalar& value, ScalarType dtype);

/// muDNN reads a scalar parameter in the type of its tensor, so an integral tensor must be given
/// the int64 overload.
template <class Op>
void SetAlpha(Op& op, const Scalar& value, ScalarType compute) {
  CHECK_MUDNN_STATUS(isIntegralType(compute, /*includeBool=*/true)
                         ? op.SetAlpha(value.to<int64_t>())
                         : op.SetAlpha(value.to<double>()),
                     "SetAlpha");
}
template <class Op>
void SetBeta(Op& op, const Scalar& value, ScalarType compute) {
  CHECK_MUDNN_STATUS(isIntegralType(compute, /*includeBool=*/true) ? op.SetBeta(value.to<int64_t>())
                                                                   : op.SetBeta(value.to<double>()),
                     "SetBeta");
}

/// The operands of one elementwise call. `compute` is the dtype muDNN sees on the inputs, `result`
/// on the output. Bool memory holds 0 and 1, so a bool operand is shown as UINT8 without a copy
/// where UINT8 is asked for: that is how comparisons, MAX, MIN and MUL take bools although muDNN
/// refuses BOOL in arithmetic. Use: build, describe the inputs, then out(), run, finish().
class IterOperands {
 public:
  IterOperands(TensorIteratorBase& iter, ScalarType compute, ScalarType result);

  /// Argument `arg` of the iterator (0 is the output) in the compute dtype, or in `dtype`.
  muTensor in(int arg) { return in(arg, compute_); }
  muTensor in(int arg, ScalarType dtype);

  muTensor out();

  /// Casts the result into the real output if the output's dtype or layout could not be written
  /// directly.
  void finish();

 private:
  DimArray strides(int arg) const;
  DimArray sizes(int arg, const DimArray& strides) const;
  Tensor view(int arg) const;

  TensorIteratorBase& iter_;
  ScalarType compute_;
  ScalarType result_;
  DimArray shape_;
  int anchor_;    // the first input that is not a CPU scalar
  bool flatten_;  // too many dimensions even after coalescing: operands become dense and
                  // one-dimensional
  Tensor temp_out_;
  c10::SmallVector<Tensor, 3> keep_;  // casts and device scalars, alive until the call is queued
};

/// How an elementwise op differs from the plain "compute and store in the common dtype".
struct Elementwise {
  const char* name;                  // for error messages, as on the CPU
  std::optional<Scalar> alpha = {};  // muDNN's Alpha and Beta
  std::optional<Scalar> beta = {};
  std::optional<ScalarType> compute = {};  // default: the iterator's common dtype
  std::optional<ScalarType> result = {};   // default: the compute dtype
  bool swapped = false;                    // Binary: lhs is argument 2, rhs argument 1
};

/// out = mode(argument 1)
void RunUnary(TensorIteratorBase& iter, UnaryMode mode, const Elementwise& op, int arg = 1);

/// out = mode(argument 1, argument 2). A CPU scalar on either side goes to the Unary mode that
/// takes it as Alpha where there is one, else becomes a one-element device tensor.
void RunBinary(TensorIteratorBase& iter, BinaryMode mode, const Elementwise& op);

/// out = mode(argument 1, argument 2, argument 3); SELECT reads argument 1 as the BOOL condition.
void RunTernary(TensorIteratorBase& iter, TernaryMode mode, const Elementwise& op);

}  // namespace at::musa
