#include "kernels/mudnn/Operands.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace at::musa {
namespace {

bool same_memory(ScalarType stored, ScalarType wanted) {
  return stored == wanted || (stored == kBool && wanted == kByte);
}

// The Unary modes that stand for a Binary mode one of whose operands is a scalar.
std::optional<UnaryMode> with_scalar_right(BinaryMode mode) {
  switch (mode) {
    case BinaryMode::ADD:
      return UnaryMode::ADD;
    case BinaryMode::SUB:
      return UnaryMode::SUB;
    case BinaryMode::MUL:
      return UnaryMode::MUL;
    case BinaryMode::TRUEDIV:
      return UnaryMode::TRUEDIV;
    case BinaryMode::FLOORDIV:
      return UnaryMode::FLOORDIV;
    case BinaryMode::TRUNCATEDIV:
      return UnaryMode::TRUNCATEDIV;
    case BinaryMode::FLOORMOD:
      return UnaryMode::FLOORMOD;
    case BinaryMode::TRUNCATEMOD:
      return UnaryMode::TRUNCATEMOD;
    case BinaryMode::POW:
      return UnaryMode::POW;
    case BinaryMode::EQ:
      return UnaryMode::EQ;
    case BinaryMode::NE:
      return UnaryMode::NE;
    case BinaryMode::LT:
      return UnaryMode::LT;
    case BinaryMode::LE:
      return UnaryMode::LE;
    case BinaryMode::GT:
      return UnaryMode::GT;
    case BinaryMode::GE:
      return UnaryMode::GE;
    default:
      return std::nullopt;
  }
}

std::optional<UnaryMode> with_scalar_left(BinaryMode mode) {
  switch (mode) {
    case BinaryMode::ADD:
      return UnaryMode::ADD;
    case BinaryMode::SUB:
      return UnaryMode::SUB_BY_ALPHA;
    case BinaryMode::MUL:
      return UnaryMode::MUL;
    case BinaryMode::TRUEDIV:
      return UnaryMode::TRUEDIV_BY_ALPHA;
    case BinaryMode::FLOORDIV:
      return UnaryMode::FLOORDIV_BY_ALPHA;
    case BinaryMode::TRUNCATEDIV:
      return UnaryMode::TRUNCATEDIV_BY_ALPHA;
    case BinaryMode::EQ:
      return UnaryMode::EQ;
    case BinaryMode::NE:
      return UnaryMode::NE;
    case BinaryMode::LT:
      return UnaryMode::GT;
    case BinaryMode::LE:
      return UnaryMode::GE;
    case BinaryMode::GT:
      return UnaryMode::LT;
    case BinaryMode::GE:
      return UnaryMode::LE;
    default:
      return std::nullopt;
  }
}

// The modes that compute in integers too. All others are functions of floating-point numbers.
bool takes_integers(UnaryMode mode) {
  switch (mode) {
    case UnaryMode::ABS:
    case UnaryMode::ADD:
    case UnaryMode::CAST:
    case UnaryMode::CLIP:
    case UnaryMode::EQ:
    case UnaryMode::FLOORDIV:
    case UnaryMode::FLOORDIV_BY_ALPHA:
    case UnaryMode::FLOORMOD:
    case UnaryMode::GE:
    case UnaryMode::GT:
    case UnaryMode::IDENTITY:
    case UnaryMode::LE:
    case UnaryMode::LT:
    case UnaryMode::MUL:
    case UnaryMode::NE:
    case UnaryMode::POW:
    case UnaryMode::RELU:
    case UnaryMode::SIGN:
    case UnaryMode::SUB:
    case UnaryMode::SUB_BY_ALPHA:
    case UnaryMode::TRUNCATEDIV:
    case UnaryMode::TRUNCATEDIV_BY_ALPHA:
    case UnaryMode::TRUNCATEMOD:
      return true;
    default:
      return false;
  }
}

bool takes_integers(BinaryMode mode) {
  switch (mode) {
    case BinaryMode::TRUEDIV:
    case BinaryMode::SIGMOID_BW:
    case BinaryMode::SILU_BW:
    case BinaryMode::TANH_BW:
    case BinaryMode::GELU_NONE_BW:
    case BinaryMode::GELU_TANH_BW:
    case BinaryMode::LEAKY_RELU_BW:
      return false;
    default:
      return true;
  }
}

bool is_logical(BinaryMode mode) {
  return mode == BinaryMode::LOGICAL_AND || mode == BinaryMode::LOGICAL_OR ||
         mode == BinaryMode::LOGICAL_XOR;
}

}  // namespace

muTensor MakeMUTensor(const void* data, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides) {
  DimArray dims(sizes.begin(), sizes.end());
  DimArray steps(strides.begin(), strides.end());
  if (dims.empty()) {
    dims.push_back(1);
    steps.push_back(1);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) steps[i] = 1;
  }
  return CreateMUTensor(const_cast<void*>(data), dtype, dims, steps);
}

muTensor MakeContiguousMUTensor(const void* data, ScalarType dtype, IntArrayRef sizes) {
  DimArray steps(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    steps[i] = step;
    step *= sizes[i];
  }
  return MakeMUTensor(data, dtype, sizes, steps);
}

Tensor DeviceScalar(const Scalar& value, ScalarType dtype, Device device) {
  Tensor result = at::empty({1}, TensorOptions(dtype).device(device));
  muTensor out = MakeContiguousMUTensor(result.mutable_data_ptr(), dtype, {1});
  ::musa::dnn::Fill fill;
  SetValue(fill, value, dtype);
  CHECK_MUDNN_STATUS(fill.Run(GetMudnnHandle(), out), "Run Fill");
  return result;
}

void SetValue(::musa::dnn::Fill& fill, const Scalar& value, ScalarType dtype) {
  if (dtype == kBool) {
    CHECK_MUDNN_STATUS(fill.SetValue(static_cast<int64_t>(value.to<bool>())), "SetValue");
  } else if (isIntegralType(dtype, /*includeBool=*/false)) {
    CHECK_MUDNN_STATUS(fill.SetValue(value.to<int64_t>()), "SetValue");
  } else {
    CHECK_MUDNN_STATUS(fill.SetValue(value.to<double>()), "SetValue");
  }
}

void CheckComputeType(ScalarType dtype, const char* op) {
  const bool supported = dtype == kHalf || dtype == kBFloat16 || dtype == kFloat ||
                         dtype == kDouble || dtype == kByte || dtype == kChar || dtype == kShort ||
                         dtype == kInt || dtype == kLong;
  CheckImplemented(supported, dtype, op);
}

Scalar CheckedScalar(const Scalar& value, ScalarType dtype) {
  switch (dtype) {
#define CASE(type, name) \
  case ScalarType::name: \
    return Scalar(value.to<type>());
    CASE(uint8_t, Byte)
    CASE(int8_t, Char)
    CASE(int16_t, Short)
    CASE(int32_t, Int)
    CASE(int64_t, Long)
    CASE(Half, Half)
    CASE(BFloat16, BFloat16)
    CASE(float, Float)
    CASE(double, Double)
    CASE(bool, Bool)
    CASE(c10::complex<float>, ComplexFloat)
    CASE(c10::complex<double>, ComplexDouble)
#undef CASE
    default:
      return value;
  }
}

IterOperands::IterOperands(TensorIteratorBase& iter, ScalarType compute, ScalarType result)
    : iter_(iter), compute_(compute), result_(result) {
  const IntArrayRef shape = iter.shape();  // fastest dimension first
  shape_.assign(shape.rbegin(), shape.rend());
  flatten_ = iter.ndim() > kMaxMudnnRank;
  anchor_ = iter.noutputs();
  while (anchor_ + 1 < iter.ntensors() && iter.is_cpu_scalar(anchor_)) ++anchor_;
}

// Strides of an operand over shape_, in elements; 0 where it is broadcast.
DimArray IterOperands::strides(int arg) const {
  const IntArrayRef bytes = iter_.strides(arg);
  const auto element = static_cast<int64_t>(iter_.element_size(arg));
  DimArray result;
  for (size_t i = bytes.size(); i-- > 0;) result.push_back(bytes[i] / element);
  return result;
}

// The sizes under which muDNN sees an operand with these strides: 1 where it is broadcast, as
// muDNN's own broadcasting wants it. It also wants some operand to have the full size; where no
// input has, the first one repeats by stride 0.
DimArray IterOperands::sizes(int arg, const DimArray& strides) const {
  DimArray result = shape_;
  for (size_t i = 0; i < result.size(); ++i) {
    if (strides[i] != 0 || result[i] == 1) continue;
    bool all_broadcast = arg == anchor_;
    for (int other = anchor_ + 1; all_broadcast && other < iter_.ntensors(); ++other) {
      const IntArrayRef steps = iter_.strides(other);
      all_broadcast = steps[steps.size() - 1 - i] == 0;
    }
    if (!all_broadcast) result[i] = 1;
  }
  return result;
}

// The operand as a tensor in the iterator's layout.
Tensor IterOperands::view(int arg) const {
  const DimArray steps = strides(arg);
  return at::as_strided(iter_.tensor(arg), sizes(arg, steps), steps);
}

muTensor IterOperands::in(int arg, ScalarType dtype) {
  if (iter_.is_cpu_scalar(arg)) {
    keep_.push_back(DeviceScalar(iter_.tensor(arg).item(), dtype, iter_.device(0)));
    // One dimension of size 1 per dimension of the call: muDNN broadcasts operands of equal rank.
    const DimArray ones(flatten_ ? 1 : shape_.size(), 1);
    return MakeMUTensor(keep_.back().const_data_ptr(), dtype, ones, ones);
  }
  if (flatten_) {
    keep_.push_back(view(arg).to(dtype).expand(shape_).reshape({-1}));
    return MakeContiguousMUTensor(keep_.back().const_data_ptr(), dtype, keep_.back().sizes());
  }
  if (!same_memory(iter_.dtype(arg), dtype)) {
    keep_.push_back(view(arg).to(dtype));
    const Tensor& cast = keep_.back();
    return MakeMUTensor(cast.const_data_ptr(), dtype, cast.sizes(), cast.strides());
  }
  const DimArray steps = strides(arg);
  return MakeMUTensor(iter_.data_ptr(arg), dtype, sizes(arg, steps), steps);
}

muTensor IterOperands::out() {
  if (!flatten_ && same_memory(iter_.dtype(0), result_)) {
    return MakeMUTensor(iter_.data_ptr(0), result_, shape_, strides(0));
  }
  temp_out_ = at::empty(shape_, iter_.tensor(0).options().dtype(result_));
  const DimArray flat{temp_out_.numel()};
  return MakeContiguousMUTensor(temp_out_.mutable_data_ptr(), result_,
                                flatten_ ? IntArrayRef(flat) : IntArrayRef(shape_));
}

void IterOperands::finish() {
  if (temp_out_.defined()) at::as_strided(iter_.tensor(0), shape_, strides(0)).copy_(temp_out_);
}

namespace {

// The case that most calls are, and the small ones feel: every operand is dense memory of the dtype
// that muDNN is to see, so the descriptors follow from the number of elements.
bool is_dense(const TensorIteratorBase& iter, int arg, ScalarType dtype) {
  return iter.dtype(arg) == dtype && !iter.device(arg).is_cpu() &&
         iter.strides(arg)[0] == static_cast<int64_t>(iter.element_size(arg));
}

muTensor DescribeAll(const TensorIteratorBase& iter, int arg, ScalarType dtype) {
  const int64_t size = iter.shape()[0], step = 1;
  return CreateMUTensor(iter.data_ptr(arg), dtype, {&size, 1}, {&step, 1});
}

::musa::dnn::Binary make_binary(BinaryMode mode, const Elementwise& op, ScalarType compute) {
  ::musa::dnn::Binary binary;
  CHECK_MUDNN_STATUS(binary.SetMode(mode), "SetMode");
  if (op.alpha) SetAlpha(binary, *op.alpha, compute);
  return binary;
}

}  // namespace

void RunUnary(TensorIteratorBase& iter, UnaryMode mode, const Elementwise& op, int arg) {
  const ScalarType compute = op.compute.value_or(iter.common_dtype());
  // Also where there is nothing to compute, like the CPU.
  CheckComputeType(compute, op.name);
  CheckImplemented(takes_integers(mode) || isFloatingType(compute), compute, op.name);
  if (iter.numel() == 0) return;
  ::musa::dnn::Unary unary;
  CHECK_MUDNN_STATUS(unary.SetMode(mode), "SetMode");
  if (op.alpha) SetAlpha(unary, *op.alpha, compute);
  if (op.beta) SetBeta(unary, *op.beta, compute);
  const ScalarType result = op.result.value_or(compute);
  if (iter.ndim() == 1 && is_dense(iter, 0, result) && is_dense(iter, arg, compute)) {
    muTensor out = DescribeAll(iter, 0, result);
    muTensor in = DescribeAll(iter, arg, compute);
    CHECK_MUDNN_STATUS(unary.Run(GetMudnnHandle(), out, in), op.name);
    return;
  }
  IterOperands operands(iter, compute, result);
  muTensor in = operands.in(arg);
  muTensor out = operands.out();
  CHECK_MUDNN_STATUS(unary.Run(GetMudnnHandle(), out, in), op.name);
  operands.finish();
}

void RunBinary(TensorIteratorBase& iter, BinaryMode mode, const Elementwise& op) {
  const ScalarType compute = op.compute.value_or(iter.common_dtype());
  if (!is_logical(mode)) CheckComputeType(compute, op.name);
  CheckImplemented(takes_integers(mode) || isFloatingType(compute), compute, op.name);
  if (iter.numel() == 0) return;
  const int left = op.swapped ? 2 : 1, right = op.swapped ? 1 : 2;
  const ScalarType result = op.result.value_or(compute);
  if (iter.ndim() == 1 && is_dense(iter, 0, result) && is_dense(iter, left, compute) &&
      is_dense(iter, right, compute)) {
    ::musa::dnn::Binary binary = make_binary(mode, op, compute);
    muTensor out = DescribeAll(iter, 0, result);
    muTensor lhs = DescribeAll(iter, left, compute);
    muTensor rhs = DescribeAll(iter, right, compute);
    CHECK_MUDNN_STATUS(binary.Run(GetMudnnHandle(), out, lhs, rhs), op.name);
    return;
  }
  // An exponent that is a parameter may not be negative for integers; one that is an operand may.
  const bool as_parameter = mode != BinaryMode::POW || isFloatingType(compute);
  if (iter.is_cpu_scalar(2) && as_parameter) {
    if (const auto unary = with_scalar_right(mode)) {
      Elementwise scalar_op = op;
      scalar_op.alpha = iter.tensor(2).item();
      return RunUnary(iter, *unary, scalar_op, 1);
    }
  } else if (iter.is_cpu_scalar(1)) {
    if (const auto unary = with_scalar_left(mode)) {
      Elementwise scalar_op = op;
      scalar_op.alpha = iter.tensor(1).item();
      return RunUnary(iter, *unary, scalar_op, 2);
    }
  }
  const ::musa::dnn::Binary binary = make_binary(mode, op, compute);
  IterOperands operands(iter, compute, result);
  muTensor lhs = operands.in(left);
  muTensor rhs = operands.in(right);
  muTensor out = operands.out();
  CHECK_MUDNN_STATUS(binary.Run(GetMudnnHandle(), out, lhs, rhs), op.name);
  operands.finish();
}

void RunTernary(TensorIteratorBase& iter, TernaryMode mode, const Elementwise& op) {
  const ScalarType compute = op.compute.value_or(iter.common_dtype());
  CheckComputeType(compute, op.name);
  if (iter.numel() == 0) return;
  IterOperands operands(iter, compute, op.result.value_or(compute));
  muTensor a = mode == TernaryMode::SELECT ? operands.in(1, kBool) : operands.in(1);
  muTensor b = operands.in(2);
  muTensor c = operands.in(3);
  muTensor out = operands.out();
  ::musa::dnn::Ternary ternary;
  CHECK_MUDNN_STATUS(ternary.SetMode(mode), "SetMode");
  if (op.alpha) SetAlpha(ternary, *op.alpha, compute);
  CHECK_MUDNN_STATUS(ternary.Run(GetMudnnHandle(), out, a, b, c), op.name);
  operands.finish();
}

}  // namespace at::musa
