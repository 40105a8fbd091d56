// arange and linspace by stub; logspace and range, which have none upstream.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <ATen/native/RangeFactories.h>
#include <ATen/native/TensorIterator.h>
#include <torch_musa/ops/logspace_native.h>
#include <torch_musa/ops/range_native.h>

#include <array>
#include <cmath>

#include "kernels/ported/EachElement.cuh"

namespace at::native {
namespace {

// Element i of the iterator's only operand becomes body(i), cast to its dtype.
template <typename func_t>
void fill_with_index(TensorIteratorBase& iter, const func_t& body) {
  if (iter.numel() == 0) {
    return;
  }
  TORCH_CHECK(iter.can_use_32bit_indexing(), "a range of ", iter.numel(), " elements is too long");
  const auto offsets = make_offset_calculator<1>(iter);
  auto* out = static_cast<char*>(iter.data_ptr(0));
  const ScalarType dtype = iter.dtype(0);
  for_each_index(iter.device(0), iter.numel(), [out, dtype, offsets, body] GPU_LAMBDA(int64_t i) {
    store_element(out + offsets.get(static_cast<uint32_t>(i))[0], dtype, body(i));
  });
}

void check_range_dtype(ScalarType dtype, bool complex_too, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(dtype != kBool && (complex_too || !isComplexType(dtype)), '"', name,
                              "\" not implemented for '", toString(dtype), "'");
}

void arange_kernel(TensorIterator& iter, const Scalar& start, const Scalar& /*steps*/,
                   const Scalar& step) {
  check_range_dtype(iter.dtype(), /*complex_too=*/false, "arange_cuda");
  if (isIntegralType(iter.dtype(), /*includeBool=*/false)) {
    const auto first = start.to<int64_t>();
    const auto stride = step.to<int64_t>();
    fill_with_index(
        iter, [first, stride] GPU_LAMBDA(int64_t i) -> int64_t { return first + stride * i; });
    return;
  }
  const auto first = start.to<double>();
  const auto stride = step.to<double>();
  fill_with_index(iter, [first, stride] GPU_LAMBDA(int64_t i) -> double {
    return first + stride * static_cast<double>(i);
  });
}

// The points of linspace in value_t, from both ends so that each end is exact; `body` maps a point
// to an element. One point is the start.
template <typename value_t, typename func_t>
void fill_linear(TensorIteratorBase& iter, value_t start, value_t end, int64_t steps,
                 const func_t& body) {
  const value_t step = steps > 1 ? (end - start) / static_cast<value_t>(steps - 1) : value_t(0);
  const int64_t half = (steps + 1) / 2;
  fill_with_index(iter, [start, end, step, half, steps, body] GPU_LAMBDA(int64_t i) {
    return body(i < half ? start + step * static_cast<value_t>(i)
                         : end - step * static_cast<value_t>(steps - i - 1));
  });
}

template <typename value_t>
struct Itself {
  __host__ __device__ value_t operator()(value_t x) const { return x; }
};

void linspace_kernel(TensorIterator& iter, const Scalar& start, const Scalar& end, int64_t steps) {
  check_range_dtype(iter.dtype(), /*complex_too=*/true, "linspace_cuda");
  const ScalarType dtype = iter.dtype();
  if (isComplexType(dtype)) {
    using value_t = c10::complex<double>;
    fill_linear<value_t>(iter, start.to<value_t>(), end.to<value_t>(), steps, Itself<value_t>{});
  } else if (isIntegralType(dtype, /*includeBool=*/false)) {
    // The ends are integers of the result's type, the points between them are not.
    fill_linear<double>(iter, static_cast<double>(start.to<int64_t>()),
                        static_cast<double>(end.to<int64_t>()), steps, Itself<double>{});
  } else if (dtype == kDouble) {
    fill_linear<double>(iter, start.to<double>(), end.to<double>(), steps, Itself<double>{});
  } else {
    fill_linear<float>(iter, start.to<float>(), end.to<float>(), steps, Itself<float>{});
  }
}

}  // namespace

REGISTER_DISPATCH(arange_stub, &arange_kernel)
REGISTER_DISPATCH(linspace_stub, &linspace_kernel)

}  // namespace at::native

namespace at::musa {
namespace {

template <typename value_t>
struct Power {
  value_t base;
  __host__ __device__ value_t operator()(value_t exponent) const {
    return std::pow(base, exponent);
  }
};

}  // namespace

Tensor& LogspaceOut(const Scalar& start, const Scalar& end, int64_t steps, double base,
                    Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  native::check_range_dtype(out.scalar_type(), /*complex_too=*/true, "logspace_cuda");
  if (out.numel() != steps) {
    out.resize_({steps});
  }
  if (steps == 0) {
    return out;
  }
  const ScalarType dtype = out.scalar_type();
  auto iter = TensorIterator::borrowing_nullary_op(out);
  if (isComplexType(dtype)) {
    using value_t = c10::complex<double>;
    native::fill_linear<value_t>(iter, start.to<value_t>(), end.to<value_t>(), steps,
                                 Power<value_t>{base});
  } else if (isIntegralType(dtype, /*includeBool=*/false)) {
    native::fill_linear<double>(iter, static_cast<double>(start.to<int64_t>()),
                                static_cast<double>(end.to<int64_t>()), steps, Power<double>{base});
  } else {
    native::fill_linear<double>(iter, start.to<double>(), end.to<double>(), steps,
                                Power<double>{base});
  }
  return out;
}

Tensor& RangeOut(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  native::check_range_dtype(out.scalar_type(), /*complex_too=*/false, "range_cuda");
  const auto first = start.to<double>();
  const auto last = end.to<double>();
  const auto stride = step.to<double>();
  TORCH_CHECK(stride > 0 || stride < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "unsupported range: ", first, " -> ",
              last);
  TORCH_CHECK((stride > 0 && last >= first) || (stride < 0 && last <= first),
              "upper bound and lower bound inconsistent with step sign");
  const auto size = static_cast<int64_t>((last - first) / stride + 1);
  if (out.numel() != size) {
    out.resize_({size});
  }
  auto iter = TensorIterator::borrowing_nullary_op(out);
  native::arange_kernel(iter, start, size, step);
  return out;
}

}  // namespace at::musa
