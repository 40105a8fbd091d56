#include "kernels/mudnn/Operands.h"
#include "torch_musa/csrc/core/TorchCompat.h"

#include <torch_musa/ops/clamp_max_native.h>
#include <torch_musa/ops/clamp_min_native.h>
#include <torch_musa/ops/clamp_native.h>

#include <cmath>
#include <limits>

namespace at::musa {
namespace {

// The largest value of `dtype`, for the side of CLIP that has no bound: an unset one would be 0,
// and a wider one is read in the tensor's type, where it wraps.
Scalar highest(ScalarType dtype) {
  switch (dtype) {
    case kByte:
      return Scalar(int64_t{std::numeric_limits<uint8_t>::max()});
    case kChar:
      return Scalar(int64_t{std::numeric_limits<int8_t>::max()});
    case kShort:
      return Scalar(int64_t{std::numeric_limits<int16_t>::max()});
    case kInt:
      return Scalar(int64_t{std::numeric_limits<int32_t>::max()});
    case kLong:
      return Scalar(std::numeric_limits<int64_t>::max());
    default:
      return Scalar(std::numeric_limits<double>::infinity());
  }
}

Scalar lowest(ScalarType dtype) {
  switch (dtype) {
    case kByte:
      return Scalar(int64_t{0});
    case kChar:
      return Scalar(int64_t{std::numeric_limits<int8_t>::lowest()});
    case kShort:
      return Scalar(int64_t{std::numeric_limits<int16_t>::lowest()});
    case kInt:
      return Scalar(int64_t{std::numeric_limits<int32_t>::lowest()});
    case kLong:
      return Scalar(std::numeric_limits<int64_t>::lowest());
    default:
      return Scalar(-std::numeric_limits<double>::infinity());
  }
}

bool is_nan(const Scalar& value) { return value.isFloatingPoint() && std::isnan(value.toDouble()); }

void clip(TensorIteratorBase& iter, std::optional<Scalar> min, std::optional<Scalar> max,
          const Tensor& out) {
  if ((min && is_nan(*min)) || (max && is_nan(*max))) {
    out.fill_(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  const ScalarType dtype = iter.common_dtype();
  if (min) min = CheckedScalar(*min, dtype);
  if (max) max = CheckedScalar(*max, dtype);
  RunUnary(iter, UnaryMode::CLIP,
           {.name = "clamp",
            .alpha = min.value_or(lowest(dtype)),
            .beta = max.value_or(highest(dtype))});
}

std::optional<Scalar> to_optional(OptionalScalarRef scalar) {
  return scalar.has_value() ? std::optional<Scalar>(scalar.get()) : std::nullopt;
}

}  // namespace

TORCH_IMPL_FUNC(MusaClamp)
(const Tensor& self, OptionalScalarRef min, OptionalScalarRef max, const Tensor& out) {
  const bool one_nan =
      min.has_value() != max.has_value() && is_nan(min.has_value() ? min.get() : max.get());
  if (one_nan && !MUSA_CLAMP_TAKES_ONE_NAN) {
    out.copy_(self);
    return;
  }
  clip(*this, to_optional(min), to_optional(max), out);
}

TORCH_IMPL_FUNC(MusaClampMin)(const Tensor& /*self*/, const Scalar& min, const Tensor& out) {
  clip(*this, min, std::nullopt, out);
}

TORCH_IMPL_FUNC(MusaClampMax)(const Tensor& /*self*/, const Scalar& max, const Tensor& out) {
  clip(*this, std::nullopt, max, out);
}

// The meta function has put the bounds that are there into the iterator.
TORCH_IMPL_FUNC(MusaClampTensor)
(const Tensor& /*self*/, OptionalTensorRef min, OptionalTensorRef max, const Tensor& /*out*/) {
  if (min && max) {
    RunTernary(*this, TernaryMode::CLAMP, {"clamp"});
  } else {
    RunBinary(*this, min ? BinaryMode::MAX : BinaryMode::MIN,
              {.name = "clamp", .compute = BoolAsByte(*this)});
  }
}

TORCH_IMPL_FUNC(MusaClampMinTensor)
(const Tensor& /*self*/, const Tensor& /*min*/, const Tensor& /*out*/) {
  RunBinary(*this, BinaryMode::MAX, {.name = "clamp_min", .compute = BoolAsByte(*this)});
}

TORCH_IMPL_FUNC(MusaClampMaxTensor)
(const Tensor& /*self*/, const Tensor& /*max*/, const Tensor& /*out*/) {
  RunBinary(*this, BinaryMode::MIN, {.name = "clamp_max", .compute = BoolAsByte(*this)});
}

}  // namespace at::musa
