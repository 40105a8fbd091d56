// Unary functions with parameters, hung on PyTorch's stubs: rounding to decimals, nan_to_num, and
// renorm's scale factor.
#include <ATen/Dispatch.h>
#include <ATen/native/Normalization.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/cuda/Loops.cuh>

#include <cmath>
#include <limits>
#include <optional>

#include "kernels/ported/OpmathDispatch.cuh"

namespace at::native {
namespace {

void round_decimals_kernel(TensorIteratorBase& iter, int64_t decimals) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "round_cuda", [&] {
    const auto power =
        static_cast<scalar_t>(std::pow(10.0, std::abs(static_cast<double>(decimals))));
    // A negative power of ten is not exact, hence the division instead.
    if (decimals < 0) {
      gpu_kernel(iter, [power] GPU_LAMBDA(scalar_t x) -> scalar_t {
        return std::nearbyint(x / power) * power;
      });
    } else {
      gpu_kernel(iter, [power] GPU_LAMBDA(scalar_t x) -> scalar_t {
        return std::nearbyint(x * power) / power;
      });
    }
  });
}

template <typename T>
struct Repair {
  T nan;
  T high;
  T low;

  __host__ __device__ T operator()(T x) const {
    if (x != x) return nan;
    if (x == std::numeric_limits<T>::infinity()) return high;
    if (x == -std::numeric_limits<T>::infinity()) return low;
    return x;
  }
};

template <typename T>
Repair<T> make_repair(std::optional<double> nan, std::optional<double> high,
                      std::optional<double> low) {
  return {nan ? static_cast<T>(*nan) : T(0),
          high ? static_cast<T>(*high) : std::numeric_limits<T>::max(),
          low ? static_cast<T>(*low) : std::numeric_limits<T>::lowest()};
}

void nan_to_num_kernel(TensorIteratorBase& iter, std::optional<double> nan,
                       std::optional<double> high, std::optional<double> low) {
  if (isComplexType(iter.dtype())) {
    AT_DISPATCH_COMPLEX_TYPES(iter.dtype(), "nan_to_num_cuda", [&] {
      const auto repair = make_repair<typename scalar_t::value_type>(nan, high, low);
      gpu_kernel(iter, [repair] GPU_LAMBDA(scalar_t z) -> scalar_t {
        return scalar_t(repair(z.real()), repair(z.imag()));
      });
    });
    return;
  }
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "nan_to_num_cuda", [&] {
    const auto repair = make_repair<scalar_t>(nan, high, low);
    gpu_kernel(iter, [repair] GPU_LAMBDA(scalar_t x) -> scalar_t { return repair(x); });
  });
}

// What a slice of that norm is multiplied with, so that its norm is at most max_norm.
void renorm_scale_factor_kernel(TensorIteratorBase& iter, double max_norm) {
  AT_DISPATCH_FLOATING_TYPES(opmath_dtype(iter), "renorm_scale_factor_cuda", [&] {
    const auto limit = static_cast<scalar_t>(max_norm);
    gpu_kernel(iter, [limit] GPU_LAMBDA(scalar_t norm) -> scalar_t {
      return norm > limit ? limit / (norm + static_cast<scalar_t>(1e-7)) : scalar_t(1);
    });
  });
}

}  // namespace

REGISTER_DISPATCH(round_decimals_stub, &round_decimals_kernel)
REGISTER_DISPATCH(nan_to_num_stub, &nan_to_num_kernel)
REGISTER_DISPATCH(renorm_scale_factor_stub, &renorm_scale_factor_kernel)

}  // namespace at::native
