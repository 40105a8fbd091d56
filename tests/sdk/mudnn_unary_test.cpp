// muDNN's Unary against <cmath> in double.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "device_tensor.h"
#include "reference_values.h"

using namespace musa::dnn;
using namespace check;

namespace {

void run_unary(Unary::Mode mode, double alpha, double beta, const at::Tensor& in,
               const at::Tensor& expected, at::ScalarType out_type) {
  Handle h(0);
  Unary op;
  CHECK_OK(op.SetMode(mode));
  if (at::isFloatingType(in.scalar_type())) {
    CHECK_OK(op.SetAlpha(alpha));
    CHECK_OK(op.SetBeta(beta));
  } else {
    CHECK_OK(op.SetAlpha(static_cast<int64_t>(alpha)));
    CHECK_OK(op.SetBeta(static_cast<int64_t>(beta)));
  }
  DeviceTensor input(in);
  DeviceTensor output(at::zeros(in.sizes(), in.options().dtype(out_type)));
  CHECK_OK(op.Run(h, output, input));
  CHECK_CLOSE(output.read(), expected, tolerance(in.scalar_type()));
}

// One mode on every floating type, contiguous and as a strided, transposed view.
template <typename F>
void check_floating(Unary::Mode mode, double alpha, double beta, std::vector<double> data, F f,
                    bool gives_bool = false) {
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor in = values(data, type);
    const auto out_type = gives_bool ? at::kBool : type;
    run_unary(mode, alpha, beta, in, map(in, f), out_type);
    const at::Tensor view = at::stack({in, in.flip(0)}, 1).repeat({1, 2}).slice(1, 0, 3).t();
    CHECK(!view.is_contiguous());
    run_unary(mode, alpha, beta, view, map(view, f), out_type);
  }
}

template <typename F>
void check_integral(Unary::Mode mode, double alpha, double beta, F f) {
  for (at::ScalarType type : {at::kInt, at::kLong, at::kShort, at::kChar}) {
    const at::Tensor in = values({-7, -3, -1, 0, 1, 2, 5, 8}, type);
    run_unary(mode, alpha, beta, in, map(in, f), type);
  }
}

const std::vector<double> kReal = {-2.5, -1.5, -0.75, -0.5, 0.25, 0.5, 1.5, 3};
const std::vector<double> kPositive = {0.125, 0.25, 0.5, 1, 1.5, 2, 3, 4};
const std::vector<double> kUnit = {-1, -0.75, -0.5, 0, 0.25, 0.5, 0.75, 1};

}  // namespace

#define UNARY_TEST(name, mode, alpha, beta, data, expression)                            \
  TEST(unary_##name) {                                                                   \
    [[maybe_unused]] const double a = alpha;                                             \
    [[maybe_unused]] const double b = beta;                                              \
    check_floating(Unary::Mode::mode, a, b, data, [=](double x) { return expression; }); \
  }

UNARY_TEST(abs, ABS, 0, 0, kReal, std::fabs(x))
UNARY_TEST(acos, ACOS, 0, 0, kUnit, std::acos(x))
UNARY_TEST(add, ADD, 1.5, 0, kReal, x + a)
UNARY_TEST(atan, ATAN, 0, 0, kReal, std::atan(x))
UNARY_TEST(ceil, CEIL, 0, 0, kReal, std::ceil(x))
UNARY_TEST(clip, CLIP, -1, 1.25, kReal, clip(x, a, b))
UNARY_TEST(cos, COS, 0, 0, kReal, std::cos(x))
UNARY_TEST(elu, ELU, 0.5, 0, kReal, x > 0 ? x : a * std::expm1(x))
UNARY_TEST(erf, ERF, 0, 0, kReal, std::erf(x))
UNARY_TEST(exp, EXP, 0, 0, kReal, std::exp(x))
UNARY_TEST(floor, FLOOR, 0, 0, kReal, std::floor(x))
UNARY_TEST(floordiv, FLOORDIV, 2, 0, kReal, std::floor(x / a))
UNARY_TEST(floordiv_by_alpha, FLOORDIV_BY_ALPHA, 3.25, 0, kReal, std::floor(a / x))
UNARY_TEST(floormod, FLOORMOD, 2, 0, kReal, floor_mod(x, a))
UNARY_TEST(gelu, GELU, 0, 0, kReal, gelu(x))
UNARY_TEST(gelu_tanh, GELU_TANH, 0, 0, kReal, gelu_tanh(x))
UNARY_TEST(hardsigmoid, HARDSIGMOID, 1.0 / 6, 0.5, kReal, clip(x* a + b, 0, 1))
UNARY_TEST(hardsigmoid_other_slope, HARDSIGMOID, 0.25, 0.5, kReal, clip(x* a + b, 0, 1))
UNARY_TEST(hardswish, HARDSWISH, 0, 0, kReal, x* clip(x + 3, 0, 6) / 6)
UNARY_TEST(identity, IDENTITY, 0, 0, kReal, x)
UNARY_TEST(leaky_relu, LEAKY_RELU, 0.25, 0, kReal, x > 0 ? x : a * x)
UNARY_TEST(log, LOG, 0, 0, kPositive, std::log(x))
UNARY_TEST(log10, LOG10, 0, 0, kPositive, std::log10(x))
UNARY_TEST(log1p, LOG1P, 0, 0, kPositive, std::log1p(x))
UNARY_TEST(log2, LOG2, 0, 0, kPositive, std::log2(x))
UNARY_TEST(mish, MISH, 0, 0, kReal, x* std::tanh(softplus(x, 1, 50)))
UNARY_TEST(mul, MUL, -1.5, 0, kReal, x* a)
UNARY_TEST(pow, POW, 2.5, 0, kPositive, std::pow(x, a))
UNARY_TEST(reciprocal, RECIPROCAL, 0, 0, kReal, 1 / x)
UNARY_TEST(relu, RELU, 0, 0, kReal, std::max(x, 0.0))
UNARY_TEST(relu6, RELU6, 0, 0, (std::vector<double>{-1, 0, 1, 5, 6, 7, 8, 100}), clip(x, 0, 6))
UNARY_TEST(round, ROUND, 0, 0, kReal, round_half_even(x))
UNARY_TEST(rsqrt, RSQRT, 0, 0, kPositive, 1 / std::sqrt(x))
UNARY_TEST(sigmoid, SIGMOID, 0, 0, kReal, sigmoid(x))
UNARY_TEST(sign, SIGN, 0, 0, kUnit, sign(x))
UNARY_TEST(silu, SILU, 0, 0, kReal, x* sigmoid(x))
UNARY_TEST(sin, SIN, 0, 0, kReal, std::sin(x))
UNARY_TEST(softplus, SOFTPLUS, 2, 3, kReal, softplus(x, a, b))
UNARY_TEST(sqrt, SQRT, 0, 0, kPositive, std::sqrt(x))
UNARY_TEST(sub, SUB, 1.5, 0, kReal, x - a)
UNARY_TEST(sub_by_alpha, SUB_BY_ALPHA, 1.5, 0, kReal, a - x)
UNARY_TEST(tan, TAN, 0, 0, kUnit, std::tan(x))
UNARY_TEST(tanh, TANH, 0, 0, kReal, std::tanh(x))
UNARY_TEST(truediv, TRUEDIV, 4, 0, kReal, x / a)
UNARY_TEST(truediv_by_alpha, TRUEDIV_BY_ALPHA, 4, 0, kReal, a / x)
UNARY_TEST(truncatediv, TRUNCATEDIV, 1, 0, kReal, std::trunc(x / a))
UNARY_TEST(truncatediv_by_alpha, TRUNCATEDIV_BY_ALPHA, 3.25, 0, kReal, std::trunc(a / x))
UNARY_TEST(truncatemod, TRUNCATEMOD, 2, 0, kReal, std::fmod(x, a))

TEST(unary_comparisons) {
  using Mode = Unary::Mode;
  const std::vector<double> data = {-2, -1, 0, 0.5, 1, 2, 0.5, 3};
  check_floating(Mode::EQ, 0.5, 0, data, [](double x) { return x == 0.5; }, true);
  check_floating(Mode::NE, 0.5, 0, data, [](double x) { return x != 0.5; }, true);
  check_floating(Mode::LT, 0.5, 0, data, [](double x) { return x < 0.5; }, true);
  check_floating(Mode::LE, 0.5, 0, data, [](double x) { return x <= 0.5; }, true);
  check_floating(Mode::GT, 0.5, 0, data, [](double x) { return x > 0.5; }, true);
  check_floating(Mode::GE, 0.5, 0, data, [](double x) { return x >= 0.5; }, true);
}

TEST(unary_not_finite) {
  using Mode = Unary::Mode;
  const std::vector<double> data = {kInfinity, -kInfinity, kNan, 0, 1, -1, 2, kNan};
  check_floating(Mode::IS_INF, 0, 0, data, [](double x) { return std::isinf(x); }, true);
  check_floating(Mode::IS_NAN, 0, 0, data, [](double x) { return std::isnan(x); }, true);
  check_floating(Mode::RELU, 0, 0, data, [](double x) { return x < 0 ? 0 : x; });
  check_floating(Mode::CLIP, -1, 1, data, [](double x) { return x < -1 ? -1 : x > 1 ? 1 : x; });
}

TEST(unary_integral) {
  using Mode = Unary::Mode;
  check_integral(Mode::ABS, 0, 0, [](double x) { return std::fabs(x); });
  check_integral(Mode::ADD, 3, 0, [](double x) { return x + 3; });
  check_integral(Mode::SUB_BY_ALPHA, 3, 0, [](double x) { return 3 - x; });
  check_integral(Mode::MUL, -1, 0, [](double x) { return -x; });
  check_integral(Mode::CLIP, -2, 4, [](double x) { return clip(x, -2, 4); });
  check_integral(Mode::FLOORDIV, 3, 0, [](double x) { return std::floor(x / 3); });
  check_integral(Mode::TRUNCATEDIV, 3, 0, [](double x) { return std::trunc(x / 3); });
  check_integral(Mode::FLOORMOD, 3, 0, [](double x) { return floor_mod(x, 3); });
  check_integral(Mode::TRUNCATEMOD, 3, 0, [](double x) { return std::fmod(x, 3); });
  check_integral(Mode::POW, 2, 0, [](double x) { return x * x; });
  check_integral(Mode::RELU, 0, 0, [](double x) { return std::max(x, 0.0); });
  check_integral(Mode::SIGN, 0, 0, sign);
}

TEST(unary_large_integers_keep_their_value) {
  const int64_t big = (int64_t{1} << 53) + 1;
  Handle h(0);
  Unary op;
  CHECK_OK(op.SetMode(Unary::Mode::ADD));
  CHECK_OK(op.SetAlpha(big));
  DeviceTensor in(at::zeros({3}, at::kLong));
  DeviceTensor out(at::zeros({3}, at::kLong));
  CHECK_OK(op.Run(h, out, in));
  CHECK_EQ(out.read()[2].item<int64_t>(), big);
}

TEST(unary_a_negative_parameter_of_an_unsigned_type_wraps) {
  Handle h(0);
  Unary op;
  CHECK_OK(op.SetMode(Unary::Mode::MUL));
  CHECK_OK(op.SetAlpha(int64_t{-1}));
  DeviceTensor in(values({0, 1, 3, 255}, at::kByte));
  DeviceTensor out(at::zeros({4}, at::kByte));
  CHECK_OK(op.Run(h, out, in));
  CHECK(at::equal(out.read(), values({0, 255, 253, 1}, at::kByte)));
  CHECK_OK(op.SetAlpha(int64_t{-256}));
  CHECK(op.Run(h, out, in) == Status::INVALID_PARAMETER);
}

TEST(unary_cast_between_all_types) {
  const std::vector<at::ScalarType> types = {at::kHalf, at::kFloat, at::kDouble, at::kBFloat16,
                                             at::kChar, at::kShort, at::kInt,    at::kLong,
                                             at::kByte, at::kBool};
  Handle h(0);
  Unary op;
  CHECK_OK(op.SetMode(Unary::Mode::CAST));
  for (at::ScalarType from : types) {
    for (at::ScalarType to : types) {
      const at::Tensor in = values({0, 1, 2, 3, 100, 0.5}, at::kDouble).to(from);
      DeviceTensor input(in);
      DeviceTensor output(at::zeros({6}, to));
      CHECK_OK(op.Run(h, output, input));
      CHECK(at::equal(output.read(), in.to(to)));
    }
  }
}

TEST(unary_unset_parameters_are_zero) {
  Handle h(0);
  DeviceTensor in(ramp({6}));
  DeviceTensor out(at::ones({6}));
  for (Unary::Mode mode : {Unary::Mode::CLIP, Unary::Mode::HARDSIGMOID}) {
    Unary op;
    CHECK_OK(op.SetMode(mode));
    CHECK_OK(op.Run(h, out, in));
    CHECK(at::equal(out.read(), at::zeros({6})));
  }
}

TEST(unary_in_place) {
  Handle h(0);
  Unary op;
  CHECK_OK(op.SetMode(Unary::Mode::EXP));
  const at::Tensor in = ramp({4, 5});
  DeviceTensor t(in);
  CHECK_OK(op.Run(h, t, t));
  CHECK_CLOSE(t.read(), in.exp(), 1e-6);
}

TEST(unary_refuses) {
  Handle h(0);
  Unary op;
  DeviceTensor a(ramp({4}));
  DeviceTensor b(ramp({4}));
  DeviceTensor ints(ramp({4}, at::kInt));
  DeviceTensor longer(ramp({5}));
  DeviceTensor flags(at::ones({4}, at::kBool));
  CHECK_STATUS(op.Run(h, a, b), INVALID_PARAMETER);  // no mode
  CHECK_STATUS(op.SetMode(static_cast<Unary::Mode>(1000)), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Unary::Mode::ADD));
  CHECK_STATUS(op.Run(h, a, longer), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, a, ints), INVALID_PARAMETER);
  CHECK_OK(op.SetAlpha(1.5));
  CHECK_STATUS(op.Run(h, ints, ints), INVALID_PARAMETER);  // the double overload
  CHECK_OK(op.SetMode(Unary::Mode::EXP));
  CHECK_STATUS(op.Run(h, ints, ints), NOT_SUPPORTED);
  CHECK_OK(op.SetMode(Unary::Mode::EQ));
  CHECK_STATUS(op.Run(h, a, b), INVALID_PARAMETER);  // out is not BOOL
  CHECK_OK(op.Run(h, flags, b));                     // and afterwards all is well
}
