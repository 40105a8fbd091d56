// random_, uniform_, normal_, bernoulli_ and the other distributions, hung on PyTorch's stubs.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "kernels/ported/KernelCheck.cuh"
#include "kernels/ported/PhiloxLoops.cuh"

namespace at::native {
namespace {

using philox::fill;
using philox::generator_of;
using philox::Words;

// A distribution over the reals needs a type to round to; the text is AT_DISPATCH's.
void check_real(ScalarType dtype, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(!isComplexType(dtype), '"', name, "\" not implemented for '",
                              toString(dtype), "'");
}

// ---- integers
// ----------------------------------------------------------------------------------------------------

// base + word % range for every element; range 0 stands for 2^64.
void fill_integers(TensorIteratorBase& iter, uint64_t range, int64_t base,
                   const std::optional<Generator>& generator) {
  auto* philox = generator_of(generator, iter.device(0));
  constexpr uint64_t kWord = uint64_t{1} << 32;
  if (range != 0 && range <= kWord) {
    fill(iter, philox, [range, base] GPU_LAMBDA(const Words& w) -> std::array<int64_t, 4> {
      std::array<int64_t, 4> values;
      for (int i = 0; i < 4; ++i) {
        values[i] = static_cast<int64_t>(w[i] % range + static_cast<uint64_t>(base));
      }
      return values;
    });
    return;
  }
  fill(iter, philox, [range, base] GPU_LAMBDA(const Words& w) -> std::array<int64_t, 2> {
    std::array<int64_t, 2> values;
    for (int i = 0; i < 2; ++i) {
      const uint64_t word = (static_cast<uint64_t>(w[2 * i]) << 32) | w[2 * i + 1];
      values[i] =
          static_cast<int64_t>((range == 0 ? word : word % range) + static_cast<uint64_t>(base));
    }
    return values;
  });
}

void random_from_to_kernel(TensorIteratorBase& iter, uint64_t range, int64_t base,
                           std::optional<Generator> generator) {
  fill_integers(iter, range, base, generator);
}

void random_full_64_bits_range_kernel(TensorIteratorBase& iter,
                                      std::optional<Generator> generator) {
  const ScalarType dtype = iter.dtype();
  TORCH_CHECK(dtype == kLong || dtype == kDouble || dtype == kFloat || dtype == kBFloat16 ||
                  dtype == kUInt64,
              "random_full_64_bits_range_kernel_cuda handles only int64, uint64, double, float and "
              "bfloat16");
  fill_integers(iter, 0, 0, generator);
}

// Everything from 0 to the largest value of an integral type, or to the last integer below which a
// floating type has them all.
void random_kernel(TensorIteratorBase& iter, std::optional<Generator> generator) {
  const auto range = [&]() -> uint64_t {
    switch (iter.dtype()) {
      case kBool:
        return 2;
      case kByte:
        return uint64_t{1} << 8;
      case kChar:
        return uint64_t{1} << 7;
      case kShort:
        return uint64_t{1} << 15;
      case kUInt16:
        return uint64_t{1} << 16;
      case kInt:
        return uint64_t{1} << 31;
      case kUInt32:
        return uint64_t{1} << 32;
      case kLong:
        return uint64_t{1} << 63;
      case kUInt64:
        return 0;
      case kHalf:
        return (uint64_t{1} << std::numeric_limits<Half>::digits) + 1;
      case kBFloat16:
        return (uint64_t{1} << std::numeric_limits<BFloat16>::digits) + 1;
      case kFloat:
        return (uint64_t{1} << std::numeric_limits<float>::digits) + 1;
      case kDouble:
        return (uint64_t{1} << std::numeric_limits<double>::digits) + 1;
      default:
        TORCH_CHECK_NOT_IMPLEMENTED(false, "\"random_cuda\" not implemented for '",
                                    toString(iter.dtype()), "'");
    }
  };
  fill_integers(iter, range(), 0, generator);
}

// ---- reals
// -------------------------------------------------------------------------------------------------------

void uniform_kernel(TensorIteratorBase& iter, double from, double to,
                    std::optional<Generator> generator) {
  auto* philox = generator_of(generator, iter.device(0));
  if (iter.dtype() == kDouble) {
    fill(iter, philox, [from, to] GPU_LAMBDA(const Words& w) {
      auto values = philox::Uniform<double>::draw(w);
      for (auto& value : values) {
        value = value * (to - from) + from;
        value = value < to ? value : from;
      }
      return values;
    });
    return;
  }
  AT_DISPATCH_SWITCH(
      iter.dtype(), "uniform_cuda", AT_DISPATCH_CASE_FLOATING_TYPES_AND2(kHalf, kBFloat16, [&] {
        const auto low = static_cast<float>(from);
        const auto high = static_cast<float>(to);
        fill(iter, philox, [low, high] GPU_LAMBDA(const Words& w) -> std::array<scalar_t, 4> {
          std::array<scalar_t, 4> values;
          for (int i = 0; i < 4; ++i) {
            const float unit = philox::unit_float(w[i], std::numeric_limits<scalar_t>::digits <= 24
                                                            ? std::numeric_limits<scalar_t>::digits
                                                            : 24);
            // The product may round up to the bound that the interval leaves out.
            const auto value = static_cast<scalar_t>(unit * (high - low) + low);
            values[i] = static_cast<float>(value) < high ? value : static_cast<scalar_t>(low);
          }
          return values;
        });
      }));
}

template <typename value_t>
void fill_normal(TensorIteratorBase& iter, double mean, double std, CUDAGeneratorImpl* generator) {
  const auto m = static_cast<value_t>(mean);
  const auto s = static_cast<value_t>(std);
  fill(iter, generator, [m, s] GPU_LAMBDA(const Words& w) {
    auto values = philox::Normal<value_t>::draw(w);
    for (auto& value : values) {
      value = value * s + m;
    }
    return values;
  });
}

void normal_kernel(const TensorBase& self, double mean, double std,
                   std::optional<Generator> generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(isFloatingType(self.scalar_type()),
                              "\"normal_cuda\" not implemented for '", toString(self.scalar_type()),
                              "'");
  auto iter = TensorIterator::borrowing_nullary_op(self);
  auto* philox = generator_of(generator, iter.device(0));
  if (iter.dtype() == kDouble) {
    fill_normal<double>(iter, mean, std, philox);
  } else {
    fill_normal<float>(iter, mean, std, philox);
  }
}

// Applies `body`, a function of one value of distribution D and its type, to every draw.
template <typename draws_t, typename func_t>
void fill_transformed(TensorIteratorBase& iter, CUDAGeneratorImpl* philox, const func_t& body) {
  fill(iter, philox, [body] GPU_LAMBDA(const Words& w) {
    auto values = draws_t::draw(w);
    for (auto& value : values) {
      value = body(value);
    }
    return values;
  });
}

template <template <typename> class D, typename func_t>
void fill_transformed(TensorIteratorBase& iter, const std::optional<Generator>& generator,
                      const char* name, const func_t& body) {
  check_real(iter.dtype(), name);
  auto* philox = generator_of(generator, iter.device(0));
  if (iter.dtype() == kDouble) {
    fill_transformed<D<double>>(iter, philox, body);
  } else {
    fill_transformed<D<float>>(iter, philox, body);
  }
}

// -log(u) / lambda for u in (0, 1].
struct Exponential {
  double lambda;
  template <typename T>
  __host__ __device__ T operator()(T unit) const {
    // The logarithm of u = 1 would give 0, which the distribution excludes: take the nearest
    // smaller u's value there.
    constexpr T kSmallest = std::numeric_limits<T>::epsilon() / 2;
    const T u = T(1) - unit;
    const T log = u >= T(1) - kSmallest ? -kSmallest : std::log(u);
    return -log / static_cast<T>(lambda);
  }
};

void exponential_kernel(TensorIteratorBase& iter, double lambda,
                        std::optional<Generator> generator) {
  TORCH_CHECK(isFloatingType(iter.dtype()),
              "Exponential distribution is a continuous probability distribution. ",
              "dtype must be a floating point but you specified ", iter.dtype());
  fill_transformed<philox::Uniform>(iter, generator, "exponential_cuda", Exponential{lambda});
}

struct Cauchy {
  double median;
  double sigma;
  template <typename T>
  __host__ __device__ T operator()(T unit) const {
    // Away from the poles of the tangent, where float would overflow.
    constexpr T kEps = std::numeric_limits<T>::epsilon();
    const T u = unit > T(1) - kEps ? T(1) - kEps : (unit < kEps ? kEps : unit);
    return static_cast<T>(median) +
           static_cast<T>(sigma) * std::tan(T(3.14159265358979323846) * (u - T(0.5)));
  }
};

void cauchy_kernel(TensorIteratorBase& iter, double median, double sigma,
                   std::optional<Generator> generator) {
  fill_transformed<philox::Uniform>(iter, generator, "cauchy_cuda", Cauchy{median, sigma});
}

struct LogNormal {
  double mean;
  double std;
  template <typename T>
  __host__ __device__ T operator()(T normal) const {
    return std::exp(normal * static_cast<T>(std) + static_cast<T>(mean));
  }
};

void log_normal_kernel(TensorIteratorBase& iter, double mean, double std,
                       std::optional<Generator> generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(isFloatingType(iter.dtype()),
                              "\"log_normal_cuda\" not implemented for '", toString(iter.dtype()),
                              "'");
  fill_transformed<philox::Normal>(iter, generator, "log_normal_cuda", LogNormal{mean, std});
}

// ---- trials
// ------------------------------------------------------------------------------------------------------

// In (0, 1): a 32-bit word on a grid that leaves out both ends.
__host__ __device__ inline double open_unit(uint32_t word) { return (word + 0.5) * 0x1p-32; }

void geometric_kernel(TensorIteratorBase& iter, double p, std::optional<Generator> generator) {
  check_real(iter.dtype(), "geometric_cuda");
  const double scale = 1 / std::log1p(-p);
  fill(iter, generator_of(generator, iter.device(0)),
       [scale] GPU_LAMBDA(const Words& w) -> std::array<double, 4> {
         std::array<double, 4> values;
         for (int i = 0; i < 4; ++i) {
           values[i] = std::ceil(std::log(open_unit(w[i])) * scale);
         }
         return values;
       });
}

void bernoulli_scalar_kernel(const TensorBase& self, double p, std::optional<Generator> generator) {
  check_real(self.scalar_type(), "bernoulli_scalar_cuda");
  auto iter = TensorIterator::borrowing_nullary_op(self);
  fill(iter, generator_of(generator, self.device()),
       [p] GPU_LAMBDA(const Words& w) -> std::array<bool, 4> {
         std::array<bool, 4> values;
         for (int i = 0; i < 4; ++i) {
           values[i] = open_unit(w[i]) < p;
         }
         return values;
       });
}

void bernoulli_tensor_kernel(const TensorBase& self_, const TensorBase& p_,
                             std::optional<Generator> generator) {
  check_real(self_.scalar_type(), "bernoulli_tensor_cuda");
  const Tensor self(self_);
  const Tensor given(p_);
  TORCH_CHECK(isFloatingType(given.scalar_type()),
              "expected probabilities tensor to have floating type, got ", given.scalar_type());
  const Tensor on_device =
      given.to(self.device(), given.scalar_type() == kDouble ? kDouble : kFloat);
  const auto p = expand_inplace(self, on_device);
  auto iter = TensorIteratorConfig()
                  .set_check_mem_overlap(true)
                  .check_all_same_dtype(false)
                  .resize_outputs(false)
                  .add_output(self)
                  .add_const_input(*p)
                  .build();
  auto* philox = generator_of(generator, self.device());
  AT_DISPATCH_FLOATING_TYPES(p->scalar_type(), "bernoulli_tensor_cuda", [&] {
    philox::transform<bool, scalar_t>(
        iter, philox, [] GPU_LAMBDA(scalar_t probability, uint32_t word) -> bool {
          KERNEL_CHECK(probability >= 0 && probability <= 1,
                       "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
          return open_unit(word) < static_cast<double>(probability);
        });
  });
}

// One sample per thread: the first category whose running sum of probabilities exceeds a uniform
// share of the total.
__global__ void multinomial_kernel(int64_t rows, int64_t categories, int64_t samples,
                                   const PhiloxCudaState philox, const double* sums, int64_t* out) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= rows * samples) {
    return;
  }
  const double* row = sums + thread / samples * categories;
  const Words words = philox::draw_round(philox, static_cast<uint64_t>(thread));
  const double share = philox::unit_double(words[0], words[1]) * row[categories - 1];
  int64_t first = 0;
  int64_t count = categories;
  while (count > 0) {
    const int64_t step = count / 2;
    if (row[first + step] <= share) {
      first += step + 1;
      count -= step + 1;
    } else {
      count = step;
    }
  }
  // Rounding may put the share at the total itself.
  out[thread] = first < categories ? first : categories - 1;
}

void multinomial_with_replacement_kernel(Tensor& result, const Tensor& self, int64_t samples,
                                         std::optional<Generator> generator) {
  const Tensor sums = at::cumsum(self, -1, kDouble).contiguous();
  const int64_t categories = self.size(-1);
  const int64_t rows = self.dim() == 2 ? self.size(0) : 1;
  const Tensor out =
      result.is_contiguous() ? result : at::empty_like(result, MemoryFormat::Contiguous);
  if (rows * samples != 0) {
    const PhiloxCudaState philox = philox::reserve_round(generator_of(generator, self.device()));
    multinomial_kernel<<<philox::blocks_for(rows * samples, 1), philox::kThreads, 0,
                         at::cuda::getCurrentCUDAStream()>>>(rows, categories, samples, philox,
                                                             sums.const_data_ptr<double>(),
                                                             out.mutable_data_ptr<int64_t>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  if (!out.is_same(result)) {
    result.copy_(out);
  }
}

}  // namespace

REGISTER_DISPATCH(random_from_to_stub, &random_from_to_kernel)
REGISTER_DISPATCH(random_full_64_bits_range_stub, &random_full_64_bits_range_kernel)
REGISTER_DISPATCH(random_stub, &random_kernel)
REGISTER_DISPATCH(uniform_stub, &uniform_kernel)
REGISTER_DISPATCH(normal_stub, &normal_kernel)
REGISTER_DISPATCH(exponential_stub, &exponential_kernel)
REGISTER_DISPATCH(cauchy_stub, &cauchy_kernel)
REGISTER_DISPATCH(log_normal_stub, &log_normal_kernel)
REGISTER_DISPATCH(geometric_stub, &geometric_kernel)
REGISTER_DISPATCH(bernoulli_scalar_stub, &bernoulli_scalar_kernel)
REGISTER_DISPATCH(bernoulli_tensor_stub, &bernoulli_tensor_kernel)
REGISTER_DISPATCH(multinomial_with_replacement_stub, &multinomial_with_replacement_kernel)

}  // namespace at::native
