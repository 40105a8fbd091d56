// muDNN's elementwise, reduction, ordering and data-movement classes against references that do not
// share their code: <cmath> in double for elementwise modes, ATen for the rest.
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

using namespace musa::dnn;
using check::DeviceTensor;
using check::no_memory;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

double tolerance(at::ScalarType type) {
  return type == at::kHalf ? 4e-3 : type == at::kBFloat16 ? 3e-2 : type == at::kFloat ? 2e-5 : 1e-9;
}

at::Tensor values(std::vector<double> data, at::ScalarType type) {
  return at::tensor(data, at::kDouble).to(type);
}

template <typename F>
at::Tensor map(const at::Tensor& in, F&& f) {
  at::Tensor out = in.to(at::kDouble).clone(at::MemoryFormat::Contiguous);
  double* data = out.data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) data[i] = f(data[i]);
  return out;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double round_half_even(double x) { return std::nearbyint(x); }
double clip(double x, double low, double high) { return std::min(std::max(x, low), high); }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double softplus(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}
double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double floor_mod(double x, double y) { return x - std::floor(x / y) * y; }

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

at::Tensor ramp(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  const int64_t n = c10::multiply_integers(sizes);
  at::Tensor t = at::arange(n, at::TensorOptions(at::kDouble));
  return ((t * 37).remainder(23) - 11).div(4).reshape(sizes).to(type);
}

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

// ---- Binary, Ternary ----------------------------------------------------------------------------

namespace {

template <typename F>
void check_binary(Binary::Mode mode, double alpha, std::vector<at::ScalarType> types,
                  bool gives_bool, F reference, const at::Tensor& left, const at::Tensor& right) {
  Handle h(0);
  for (at::ScalarType type : types) {
    const at::Tensor l = left.to(type);
    const at::Tensor r = right.to(type);
    // Same shape, broadcast on either side, transposed.
    const std::vector<std::pair<at::Tensor, at::Tensor>> pairs = {
        {l, r},
        {l, r[0]},
        {l.slice(1, 0, 1), r},
        {l.t(), r.t()},
        {l.slice(1, 0, l.size(1), 2), r.slice(1, 0, r.size(1), 2)}};
    for (const auto& [x, y] : pairs) {
      Binary op;
      CHECK_OK(op.SetMode(mode));
      CHECK_OK(at::isFloatingType(type) ? op.SetAlpha(alpha)
                                        : op.SetAlpha(static_cast<int64_t>(alpha)));
      const std::vector<int64_t> shape = at::broadcast_tensors({x, y})[0].sizes().vec();
      DeviceTensor lhs(x);
      DeviceTensor rhs(y);
      DeviceTensor out(at::zeros(shape, gives_bool ? at::kBool : type));
      CHECK_OK(op.Run(h, out, lhs, rhs));
      auto both = at::broadcast_tensors({x.to(at::kDouble), y.to(at::kDouble)});
      at::Tensor expected = at::empty(shape, at::kDouble);
      const at::Tensor p = both[0].contiguous();
      const at::Tensor q = both[1].contiguous();
      for (int64_t i = 0; i < expected.numel(); ++i) {
        expected.data_ptr<double>()[i] =
            reference(p.data_ptr<double>()[i], q.data_ptr<double>()[i]);
      }
      CHECK_CLOSE(out.read(), expected, tolerance(type));
    }
  }
}

const std::vector<at::ScalarType> kFloats = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
const std::vector<at::ScalarType> kNumbers = {at::kFloat, at::kDouble, at::kHalf,  at::kBFloat16,
                                              at::kInt,   at::kLong,   at::kShort, at::kChar};

at::Tensor left_operand() {
  return values({-6, -3, -1, 0, 1, 2, 4, 5, -5, 7, 3, -2}, at::kDouble).reshape({3, 4});
}
at::Tensor right_operand() {
  return values({2, -3, 1, 3, -1, 2, 5, -5, 4, 3, -2, 1}, at::kDouble).reshape({3, 4});
}

}  // namespace

#define BINARY_TEST(name, mode, alpha, types, gives_bool, expression)             \
  TEST(binary_##name) {                                                           \
    [[maybe_unused]] const double a = alpha;                                      \
    check_binary(                                                                 \
        Binary::Mode::mode, a, types, gives_bool,                                 \
        [=](double x, double y) -> double { return expression; }, left_operand(), \
        right_operand());                                                         \
  }

BINARY_TEST(add, ADD, 0, kNumbers, false, x + y)
BINARY_TEST(add_alpha, ADD_ALPHA, 3, kNumbers, false, x + a * y)
BINARY_TEST(sub, SUB, 0, kNumbers, false, x - y)
BINARY_TEST(sub_alpha, SUB_ALPHA, 3, kNumbers, false, x - a * y)
BINARY_TEST(mul, MUL, 0, kNumbers, false, x* y)
BINARY_TEST(truediv, TRUEDIV, 0, kFloats, false, x / y)
BINARY_TEST(floordiv, FLOORDIV, 0, kNumbers, false, std::floor(x / y))
BINARY_TEST(truncatediv, TRUNCATEDIV, 0, kNumbers, false, std::trunc(x / y))
BINARY_TEST(floormod, FLOORMOD, 0, kNumbers, false, floor_mod(x, y))
BINARY_TEST(truncatemod, TRUNCATEMOD, 0, kNumbers, false, std::fmod(x, y))
BINARY_TEST(max, MAX, 0, kNumbers, false, std::max(x, y))
BINARY_TEST(min, MIN, 0, kNumbers, false, std::min(x, y))
BINARY_TEST(eq, EQ, 0, kNumbers, true, x == y)
BINARY_TEST(ne, NE, 0, kNumbers, true, x != y)
BINARY_TEST(lt, LT, 0, kNumbers, true, x < y)
BINARY_TEST(le, LE, 0, kNumbers, true, x <= y)
BINARY_TEST(gt, GT, 0, kNumbers, true, x > y)
BINARY_TEST(ge, GE, 0, kNumbers, true, x >= y)
BINARY_TEST(logical_and, LOGICAL_AND, 0, kNumbers, true, x&& y)
BINARY_TEST(logical_or, LOGICAL_OR, 0, kNumbers, true, x || y)
BINARY_TEST(logical_xor, LOGICAL_XOR, 0, kNumbers, true, (x != 0) != (y != 0))
BINARY_TEST(sigmoid_bw, SIGMOID_BW, 0, kFloats, false, x * y * (1 - y))
BINARY_TEST(tanh_bw, TANH_BW, 0, kFloats, false, x * (1 - y * y))
BINARY_TEST(silu_bw, SILU_BW, 0, kFloats, false, x* sigmoid(y) * (1 + y * (1 - sigmoid(y))))
BINARY_TEST(threshold_bw, THRESHOLD_BW, 1, kNumbers, false, y > a ? x : 0)
BINARY_TEST(leaky_relu_bw, LEAKY_RELU_BW, 0.5, kFloats, false, y > 0 ? x : a * x)
BINARY_TEST(gelu_none_bw, GELU_NONE_BW, 0, kFloats, false,
            x * (0.5 * (1 + std::erf(y / std::sqrt(2.0))) +
                 y * std::exp(-y * y / 2) / std::sqrt(2 * M_PI)))

TEST(binary_pow) {
  check_binary(
      Binary::Mode::POW, 0, kFloats, false, [](double x, double y) { return std::pow(x, y); },
      left_operand().abs() * 0.25 + 0.5, right_operand());
  check_binary(
      Binary::Mode::POW, 0, {at::kInt, at::kLong}, false,
      [](double x, double y) { return std::pow(x, y); }, left_operand(), right_operand().abs());
}

TEST(binary_gelu_tanh_bw) {
  Handle h(0);
  Binary op;
  CHECK_OK(op.SetMode(Binary::Mode::GELU_TANH_BW));
  const at::Tensor x = ramp({3, 5}).to(at::kDouble);
  DeviceTensor grad(at::ones_like(x));
  DeviceTensor in(x);
  DeviceTensor out(at::zeros_like(x));
  CHECK_OK(op.Run(h, out, grad, in));
  const double step = 1e-6;
  const at::Tensor slope = (map(x + step, gelu_tanh) - map(x - step, gelu_tanh)) / (2 * step);
  CHECK_CLOSE(out.read(), slope, 1e-6);
}

TEST(binary_nan) {
  Handle h(0);
  DeviceTensor nan(at::full({2}, kNan));
  DeviceTensor one(at::ones({2}));
  for (Binary::Mode mode : {Binary::Mode::MAX, Binary::Mode::MIN}) {
    Binary op;
    CHECK_OK(op.SetMode(mode));
    DeviceTensor out(at::zeros({2}));
    CHECK_OK(op.Run(h, out, one, nan));
    CHECK(out.read().isnan().all().item<bool>());
  }
}

TEST(binary_compares_and_combines_bool) {
  Handle h(0);
  const at::Tensor x = at::tensor({1, 1, 0, 0}).to(at::kBool);
  const at::Tensor y = at::tensor({1, 0, 1, 0}).to(at::kBool);
  DeviceTensor lhs(x);
  DeviceTensor rhs(y);
  DeviceTensor out(at::zeros({4}, at::kBool));
  Binary op;
  CHECK_OK(op.SetMode(Binary::Mode::EQ));
  CHECK_OK(op.Run(h, out, lhs, rhs));
  CHECK(at::equal(out.read(), x.eq(y)));
  CHECK_OK(op.SetMode(Binary::Mode::LOGICAL_XOR));
  CHECK_OK(op.Run(h, out, lhs, rhs));
  CHECK(at::equal(out.read(), x.logical_xor(y)));
}

TEST(binary_in_place_on_a_view) {
  Handle h(0);
  Binary op;
  CHECK_OK(op.SetMode(Binary::Mode::ADD));
  const at::Tensor base = ramp({4, 6});
  DeviceTensor t(base.t());
  DeviceTensor row(ramp({4}));
  CHECK_OK(op.Run(h, t, t, row));
  CHECK_CLOSE(t.read(), base.t() + ramp({4}), 1e-6);
}

TEST(binary_rank_8) {
  Handle h(0);
  Binary op;
  CHECK_OK(op.SetMode(Binary::Mode::MUL));
  const at::Tensor x = ramp({2, 1, 2, 1, 2, 1, 2, 3});
  const at::Tensor y = ramp({1, 2, 1, 2, 1, 2, 2, 3});
  DeviceTensor lhs(x);
  DeviceTensor rhs(y);
  DeviceTensor out(at::zeros({2, 2, 2, 2, 2, 2, 2, 3}));
  CHECK_OK(op.Run(h, out, lhs, rhs));
  CHECK_CLOSE(out.read(), x * y, 1e-6);
}

TEST(binary_refuses) {
  Handle h(0);
  Binary op;
  DeviceTensor a(ramp({2, 3}));
  DeviceTensor b(ramp({3}));
  DeviceTensor wrong(ramp({2}));
  DeviceTensor wide(ramp({4, 2, 3}));
  DeviceTensor halves(ramp({2, 3}, at::kHalf));
  DeviceTensor ints(ramp({2, 3}, at::kInt));
  CHECK_STATUS(op.Run(h, a, a, b), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Binary::Mode::ADD));
  CHECK_STATUS(op.Run(h, a, a, wrong), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, b, a, b), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, wide, a, b), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, a, a, halves), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, halves, a, b), INVALID_PARAMETER);
  Tensor absent;
  CHECK_STATUS(op.Run(h, a, a, absent), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, absent, a, b), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Binary::Mode::TRUEDIV));
  CHECK_STATUS(op.Run(h, ints, ints, ints), NOT_SUPPORTED);
  CHECK_OK(op.Run(h, a, a, b));
}

TEST(integer_division_by_zero_is_a_status) {
  Handle h(0);
  Binary op;
  DeviceTensor ones(at::ones({3}, at::kInt));
  DeviceTensor zeros(at::zeros({3}, at::kInt));
  DeviceTensor out(at::zeros({3}, at::kInt));
  CHECK_OK(op.SetMode(Binary::Mode::FLOORDIV));
  CHECK_STATUS(op.Run(h, out, ones, zeros), EXECUTION_FAILED);
  CHECK_OK(op.Run(h, out, ones, ones));
}

TEST(ternary_modes) {
  Handle h(0);
  const at::Tensor a = ramp({3, 4});
  const at::Tensor b = ramp({4}) + 0.1;
  const at::Tensor c = ramp({3, 1}).abs() + 1;
  DeviceTensor x(a);
  DeviceTensor y(b);
  DeviceTensor z(c);
  const std::vector<std::pair<Ternary::Mode, at::Tensor>> expected = {
      {Ternary::Mode::ADDCMUL, a + b * c},
      {Ternary::Mode::ADDCMUL_ALPHA, a + 0.5 * b * c},
      {Ternary::Mode::ADDCDIV, a + b / c},
      {Ternary::Mode::ADDCDIV_ALPHA, a + 0.5 * b / c},
      {Ternary::Mode::CLAMP, at::minimum(at::maximum(a, b), c)}};
  for (const auto& [mode, result] : expected) {
    Ternary op;
    CHECK_OK(op.SetMode(mode));
    CHECK_OK(op.SetAlpha(0.5));
    DeviceTensor out(at::zeros({3, 4}));
    CHECK_OK(op.Run(h, out, x, y, z));
    CHECK_CLOSE(out.read(), result, 1e-5);
  }
}

TEST(ternary_select) {
  Handle h(0);
  Ternary op;
  CHECK_OK(op.SetMode(Ternary::Mode::SELECT));
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kLong, at::kBool, at::kByte}) {
    const at::Tensor condition = ramp({3, 1}).gt(0);
    const at::Tensor yes = ramp({3, 4}).to(type);
    const at::Tensor no = ramp({4}).flip(0).to(type);
    DeviceTensor c(condition);
    DeviceTensor y(yes);
    DeviceTensor n(no);
    DeviceTensor out(at::zeros({3, 4}, type));
    CHECK_OK(op.Run(h, out, c, y, n));
    CHECK(at::equal(out.read(), at::where(condition, yes, no)));
  }
}

TEST(ternary_refuses) {
  Handle h(0);
  Ternary op;
  DeviceTensor a(ramp({4}));
  DeviceTensor ints(ramp({4}, at::kInt));
  DeviceTensor flags(at::ones({4}, at::kBool));
  CHECK_STATUS(op.Run(h, a, a, a, a), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Ternary::Mode::SELECT));
  CHECK_STATUS(op.Run(h, a, a, a, a), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, a, flags, a, ints), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Ternary::Mode::ADDCDIV));
  CHECK_STATUS(op.Run(h, ints, ints, ints, ints), NOT_SUPPORTED);
}

// ---- Reduce, Cum, Softmax
// ------------------------------------------------------------------------

namespace {

using Reference = at::Tensor (*)(const at::Tensor&, at::IntArrayRef, bool);

void check_reduce(Reduce::Mode mode, std::vector<std::pair<at::ScalarType, at::ScalarType>> types,
                  Reference reference) {
  Handle h(0);
  const std::vector<std::vector<int>> dims = {{0}, {1}, {-1}, {0, 2}, {0, 1, 2}, {}};
  for (auto [in_type, out_type] : types) {
    for (bool transposed : {false, true}) {
      at::Tensor x = ramp({3, 4, 5}).to(in_type);
      if (transposed) x = x.transpose(0, 2);
      for (const std::vector<int>& d : dims) {
        const std::vector<int64_t> wide(d.begin(), d.end());
        for (bool keep : {false, true}) {
          at::Tensor expected =
              reference(x.to(out_type == at::kBool ? at::kBool : at::kDouble),
                        wide.empty() ? std::vector<int64_t>{0, 1, 2} : wide, keep);
          if (expected.dim() == 0) expected = expected.reshape({1});
          DeviceTensor in(x);
          DeviceTensor out(at::zeros(expected.sizes(), out_type));
          Reduce op;
          CHECK_OK(op.SetMode(mode));
          CHECK_OK(op.SetDim(static_cast<int>(d.size()), d.data()));
          CHECK_OK(op.Run(h, out, in, no_memory));
          CHECK_CLOSE(out.read(), expected, tolerance(in_type) * 10);
        }
      }
    }
  }
}

}  // namespace

TEST(reduce_add) {
  check_reduce(Reduce::Mode::ADD,
               {{at::kFloat, at::kFloat},
                {at::kHalf, at::kHalf},
                {at::kHalf, at::kFloat},
                {at::kInt, at::kLong},
                {at::kLong, at::kLong},
                {at::kChar, at::kLong},
                {at::kBool, at::kLong},
                {at::kDouble, at::kDouble}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.sum(d, keep); });
}

TEST(reduce_mean) {
  check_reduce(Reduce::Mode::MEAN, {{at::kFloat, at::kFloat}, {at::kBFloat16, at::kFloat}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.mean(d, keep); });
}

TEST(reduce_max_min) {
  check_reduce(Reduce::Mode::MAX, {{at::kFloat, at::kFloat}, {at::kInt, at::kInt}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.amax(d, keep); });
  check_reduce(Reduce::Mode::MIN, {{at::kHalf, at::kHalf}, {at::kLong, at::kLong}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.amin(d, keep); });
}

TEST(reduce_prod) {
  check_reduce(Reduce::Mode::PROD, {{at::kDouble, at::kDouble}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) {
                 at::Tensor result = x;
                 std::vector<int64_t> sorted(d.begin(), d.end());
                 for (int64_t& dim : sorted) dim = dim < 0 ? dim + x.dim() : dim;
                 std::sort(sorted.rbegin(), sorted.rend());
                 for (int64_t dim : sorted) result = result.prod(dim, keep);
                 return result;
               });
}

TEST(reduce_and_or) {
  check_reduce(Reduce::Mode::AND, {{at::kBool, at::kBool}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.all(d, keep); });
  check_reduce(Reduce::Mode::OR, {{at::kBool, at::kBool}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.any(d, keep); });
}

TEST(reduce_variance_std) {
  check_reduce(Reduce::Mode::VARIANCE, {{at::kFloat, at::kFloat}, {at::kHalf, at::kFloat}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) {
                 return x.var(at::OptionalIntArrayRef(d), std::optional<at::Scalar>(1), keep);
               });
  Handle h(0);
  const at::Tensor x = ramp({4, 6});
  const at::Tensor squares = (x - x.mean(1, true)).square().sum(1);
  DeviceTensor in(x);
  for (double correction : {0.0, 0.5, 1.0, 2.0}) {
    DeviceTensor out(at::zeros({4}));
    Reduce op;
    CHECK_OK(op.SetDim({1}));
    CHECK_OK(op.SetCorrection(correction));
    CHECK_OK(op.SetMode(Reduce::Mode::VARIANCE));
    CHECK_OK(op.Run(h, out, in, no_memory));
    CHECK_CLOSE(out.read(), squares / (6 - correction), 1e-5);
    CHECK_OK(op.SetMode(Reduce::Mode::STD));
    CHECK_OK(op.Run(h, out, in, no_memory));
    CHECK_CLOSE(out.read(), (squares / (6 - correction)).sqrt(), 1e-5);
  }
}

TEST(reduce_norm) {
  Handle h(0);
  const at::Tensor x = ramp({4, 6});
  DeviceTensor in(x);
  for (double order : {0.0, 1.0, 2.0, 3.5, kInfinity}) {
    DeviceTensor out(at::zeros({4, 1}));
    Reduce op;
    CHECK_OK(op.SetMode(Reduce::Mode::NORM));
    CHECK_OK(op.SetDim({1}));
    CHECK_OK(op.SetNormOrd(order));
    CHECK_OK(op.Run(h, out, in, no_memory));
    const at::Tensor expected = order == 0 ? x.ne(0).sum(1, true).to(at::kFloat)
                                : std::isinf(order)
                                    ? x.abs().amax(1, true)
                                    : x.abs().pow(order).sum(1, true).pow(1 / order);
    CHECK_CLOSE(out.read(), expected, 1e-5);
  }
}

TEST(reduce_indices) {
  Handle h(0);
  const at::Tensor x = ramp({4, 6}).t();
  DeviceTensor in(x);
  for (bool max : {true, false}) {
    Reduce op;
    CHECK_OK(op.SetMode(max ? Reduce::Mode::MAX : Reduce::Mode::MIN));
    CHECK_OK(op.SetDim({1}));
    auto [values, positions] = max ? x.max(1) : x.min(1);
    DeviceTensor out(at::zeros({6}));
    DeviceTensor indices(at::zeros({6}, at::kLong));
    CHECK_OK(op.RunWithIndices(h, out, indices, in, no_memory));
    CHECK(at::equal(out.read(), values));
    CHECK(at::equal(indices.read(), positions));
    DeviceTensor only(at::zeros({6, 1}, at::kLong));
    CHECK_OK(op.RunIndices(h, only, in, no_memory));
    CHECK(at::equal(only.read(), positions.unsqueeze(1)));
    CHECK_OK(op.SetDim({}));
    DeviceTensor flat(at::zeros({1}, at::kLong));
    CHECK_OK(op.RunIndices(h, flat, in, no_memory));
    CHECK(at::equal(flat.read(), (max ? x.argmax() : x.argmin()).reshape({1})));
  }
}

TEST(reduce_refuses) {
  Handle h(0);
  DeviceTensor in(ramp({4, 6}));
  DeviceTensor row(at::zeros({6}));
  DeviceTensor ints(ramp({4, 6}, at::kInt));
  DeviceTensor int_row(ramp({6}, at::kInt));
  DeviceTensor flags(at::zeros({6}, at::kBool));
  Reduce op;
  CHECK_OK(op.SetDim({0}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);  // no mode
  CHECK_OK(op.SetMode(Reduce::Mode::MEAN));
  CHECK_STATUS(op.Run(h, int_row, ints, no_memory), NOT_SUPPORTED);
  CHECK_STATUS(op.RunIndices(h, row, in, no_memory), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Reduce::Mode::OR));
  CHECK_STATUS(op.Run(h, flags, in, no_memory), NOT_SUPPORTED);  // out must have in's type
  CHECK_OK(op.SetMode(Reduce::Mode::ADD));
  CHECK_OK(op.SetDim({1}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);  // shape
  CHECK_OK(op.SetDim({5}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);
  CHECK_OK(op.SetDim({0, -2}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);  // the same twice
  CHECK_OK(op.SetDim({0}));
  CHECK_OK(op.Run(h, row, in, no_memory));
}

TEST(cum) {
  Handle h(0);
  for (auto [in_type, out_type] :
       std::vector<std::pair<at::ScalarType, at::ScalarType>>{{at::kFloat, at::kFloat},
                                                              {at::kHalf, at::kHalf},
                                                              {at::kInt, at::kInt},
                                                              {at::kInt, at::kLong},
                                                              {at::kLong, at::kLong}}) {
    for (int dim : {0, 1, -1}) {
      const at::Tensor x = ramp({3, 4, 2}).transpose(0, 1).to(in_type);
      DeviceTensor in(x);
      DeviceTensor out(at::zeros(x.sizes(), out_type));
      Cum op;
      CHECK_OK(op.SetMode(Cum::Mode::ADD));
      CHECK_OK(op.SetDim(dim));
      CHECK_OK(op.Run(h, out, in, no_memory));
      CHECK_CLOSE(out.read(), x.to(at::kDouble).cumsum(dim), tolerance(in_type) * 10);
      CHECK_OK(op.SetMode(Cum::Mode::MUL));
      CHECK_OK(op.Run(h, out, in, no_memory));
      CHECK_CLOSE(out.read(), x.to(at::kDouble).cumprod(dim), tolerance(in_type) * 10);
    }
  }
  const at::Tensor x = ramp({5});
  DeviceTensor t(x);
  Cum op;
  CHECK_OK(op.SetMode(Cum::Mode::ADD));
  CHECK_OK(op.Run(h, t, t, no_memory));
  CHECK_CLOSE(t.read(), x.cumsum(0), 1e-6);
  DeviceTensor bytes(ramp({5}, at::kByte));
  CHECK_STATUS(op.Run(h, bytes, bytes, no_memory), NOT_SUPPORTED);
}

TEST(softmax) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (int dim : {0, 1, -1}) {
      const at::Tensor x = ramp({3, 4, 5}).to(type);
      const at::Tensor e = (x.to(at::kDouble) - x.to(at::kDouble).amax(dim, true)).exp();
      const at::Tensor expected = e / e.sum(dim, true);
      Softmax op;
      CHECK_OK(op.SetDim(dim));
      CHECK_OK(op.SetAlgorithm(Softmax::Algorithm::ACCURATE));
      CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
      DeviceTensor in(x);
      DeviceTensor out(at::zeros_like(x));
      CHECK_OK(op.Run(h, out, in));
      CHECK_CLOSE(out.read(), expected, tolerance(type));
      CHECK_OK(op.SetMode(Softmax::Mode::LOGSOFTMAX));
      CHECK_OK(op.Run(h, out, in));
      CHECK_CLOSE(out.read(), expected.log(), tolerance(type));
      CHECK_OK(op.SetMode(Softmax::Mode::LOGSUMEXP));
      const at::Tensor total = x.to(at::kDouble).exp().sum(dim).log();
      DeviceTensor sums(at::zeros(total.sizes(), type));
      CHECK_OK(op.Run(h, sums, in));
      CHECK_CLOSE(sums.read(), total, tolerance(type));
      CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
      CHECK_OK(op.Run(h, in, in));  // in place
      CHECK_CLOSE(in.read(), expected, tolerance(type));
    }
  }
}

TEST(softmax_backward) {
  Handle h(0);
  const at::Tensor x = ramp({3, 5}).to(at::kDouble);
  const at::Tensor g = ramp({3, 5}).flip(1).to(at::kDouble).contiguous();
  const at::Tensor s = x.softmax(1);
  Softmax op;
  CHECK_OK(op.SetDim(1));
  CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
  DeviceTensor grad_in(at::zeros_like(x));
  DeviceTensor grad_out(g);
  DeviceTensor out(s);
  CHECK_OK(op.RunBwd(h, grad_in, out, grad_out));
  CHECK_CLOSE(grad_in.read(), s * (g - (g * s).sum(1, true)), 1e-9);
  CHECK_OK(op.SetMode(Softmax::Mode::LOGSOFTMAX));
  DeviceTensor log_out(s.log());
  CHECK_OK(op.RunBwd(h, grad_in, log_out, grad_out));
  CHECK_CLOSE(grad_in.read(), g - s * g.sum(1, true), 1e-9);
  CHECK_OK(op.SetMode(Softmax::Mode::LOGSUMEXP));
  CHECK_STATUS(op.RunBwd(h, grad_in, out, grad_out), NOT_SUPPORTED);
}

// ---- data movement ------------------------------------------------------------------------------

TEST(fill) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kLong, at::kByte, at::kBool}) {
    Fill op;
    DeviceTensor out(at::zeros({3, 4}, type).t());
    CHECK_STATUS(op.Run(h, out), INVALID_PARAMETER);  // no value
    if (at::isFloatingType(type)) {
      CHECK_OK(op.SetValue(1.0));
    } else {
      CHECK_OK(op.SetValue(2.5));
      CHECK_STATUS(op.Run(h, out), INVALID_PARAMETER);
      CHECK_OK(op.SetValue(int64_t{1}));
    }
    CHECK_OK(op.Run(h, out));
    CHECK(at::equal(out.read(), at::ones({4, 3}, type)));
  }
}

TEST(fill_masked) {
  Handle h(0);
  const at::Tensor x = ramp({3, 4});
  const at::Tensor m = ramp({4}).gt(0);
  DeviceTensor out(x);
  DeviceTensor mask(m);
  Fill op;
  CHECK_OK(op.SetValue(9.0));
  CHECK_OK(op.Run(h, out, mask));
  CHECK(at::equal(out.read(), x.masked_fill(m, 9)));
  DeviceTensor numbers(ramp({4}));
  CHECK_STATUS(op.Run(h, out, numbers), INVALID_PARAMETER);
}

TEST(concat) {
  Handle h(0);
  const at::Tensor a = ramp({2, 3});
  const at::Tensor b = ramp({5, 2}).t();
  const at::Tensor c = ramp({2, 1});
  DeviceTensor x(a);
  DeviceTensor y(b);
  DeviceTensor z(c);
  const Tensor inputs[] = {x.desc, y.desc, z.desc};
  DeviceTensor out(at::zeros({9, 2}).t());
  Concat op;
  CHECK_OK(op.SetAxis(-1));
  CHECK_OK(op.Run(h, out, 3, inputs));
  CHECK(at::equal(out.read(), at::cat({a, b, c}, 1)));
  CHECK_STATUS(op.Run(h, out, 2, inputs), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, out, 0, nullptr), INVALID_PARAMETER);
  CHECK_OK(op.SetAxis(0));
  CHECK_STATUS(op.Run(h, out, 3, inputs), INVALID_PARAMETER);
}

TEST(permute) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kBool, at::kLong}) {
    const at::Tensor x = ramp({2, 3, 4}).to(type).permute({2, 0, 1});
    DeviceTensor in(x);
    DeviceTensor out(at::zeros({3, 4, 2}, type).permute({1, 2, 0}));
    Permute op;
    CHECK_OK(op.Run(h, out, in));
    CHECK(at::equal(out.read(), x));
  }
}

TEST(pad) {
  Handle h(0);
  const at::Tensor x = ramp({2, 3, 4, 5});
  DeviceTensor in(x.transpose(2, 3));
  const std::vector<int> sides = {1, 2, 3, 0};  // pairs, from the last dimension on
  const std::vector<int64_t> wide(sides.begin(), sides.end());
  const std::vector<std::pair<Pad::Mode, const char*>> modes = {
      {Pad::Mode::CONSTANT, "constant"},
      {Pad::Mode::REFLECT, "reflect"},
      {Pad::Mode::REPLICATE, "replicate"}};
  for (const auto& [mode, name] : modes) {
    Pad op;
    CHECK_OK(op.SetMode(mode));
    CHECK_OK(op.SetValue(mode == Pad::Mode::CONSTANT ? 2.5 : 0.0));
    CHECK_OK(op.SetPaddingInfo(4, sides.data()));
    DeviceTensor out(at::zeros({2, 3, 8, 7}));
    CHECK_OK(op.Run(h, out, in));
    const auto value =
        mode == Pad::Mode::CONSTANT ? std::optional<double>(2.5) : std::optional<double>();
    CHECK(at::equal(out.read(), at::pad(x.transpose(2, 3), wide, name, value)));
    DeviceTensor wrong(at::zeros({2, 3, 8, 8}));
    CHECK_STATUS(op.Run(h, wrong, in), INVALID_PARAMETER);
  }
  Pad op;
  DeviceTensor out(at::zeros({2, 3, 8, 7}));
  CHECK_STATUS(op.Run(h, out, in), INVALID_PARAMETER);  // no mode
  CHECK_STATUS(op.SetPaddingInfo({1, 2, 3}), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Pad::Mode::REFLECT));
  CHECK_OK(op.SetPaddingInfo({5, 0}));
  DeviceTensor long_out(at::zeros({2, 3, 5, 9}));
  CHECK_STATUS(op.Run(h, long_out, in), INVALID_PARAMETER);  // reflects more than there is
}

TEST(glu) {
  Handle h(0);
  const at::Tensor x = ramp({4, 6});
  for (int axis : {0, -1}) {
    const auto halves = x.chunk(2, axis);
    DeviceTensor in(x);
    DeviceTensor out(at::zeros_like(halves[0]).contiguous());
    Glu op;
    CHECK_OK(op.SetAxis(axis));
    CHECK_OK(op.Run(h, out, in));
    CHECK_CLOSE(out.read(), halves[0] * halves[1].sigmoid(), 1e-6);
    CHECK_STATUS(op.Run(h, in, in), INVALID_PARAMETER);
  }
  DeviceTensor odd(ramp({3}));
  DeviceTensor out(at::zeros({1}));
  Glu op;
  CHECK_STATUS(op.Run(h, out, odd), INVALID_PARAMETER);
}

TEST(nonzero) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kBool, at::kLong, at::kHalf}) {
    const at::Tensor x = at::tensor({0, 1, 0, 2, 0, 0, 3, 4}).reshape({2, 4}).to(type);
    DeviceTensor in(x);
    DeviceTensor out(at::full({8, 2}, -1, at::kLong));
    Nonzero op;
    CHECK_OK(op.Run(h, out, in, no_memory));
    std::vector<int64_t> dims;
    CHECK_OK(out.desc.GetNdInfo(dims));
    CHECK((dims == std::vector<int64_t>{4, 2}));
    CHECK(at::equal(out.read().narrow(0, 0, 4), x.nonzero()));
    CHECK(out.read().narrow(0, 4, 4).eq(-1).all().item<bool>());
  }
}

TEST(nonzero_of_zeros_and_too_small_an_output) {
  Handle h(0);
  Nonzero op;
  DeviceTensor zeros(at::zeros({5}));
  DeviceTensor out(at::zeros({5, 1}, at::kLong));
  CHECK_OK(op.Run(h, out, zeros, no_memory));
  std::vector<int64_t> dims;
  CHECK_OK(out.desc.GetNdInfo(dims));
  CHECK((dims == std::vector<int64_t>{0, 1}));
  DeviceTensor ones(at::ones({5}));
  DeviceTensor small(at::zeros({2, 1}, at::kLong));
  CHECK_STATUS(op.Run(h, small, ones, no_memory), INVALID_PARAMETER);
  DeviceTensor wrong(at::zeros({5, 2}, at::kLong));
  CHECK_STATUS(op.Run(h, wrong, ones, no_memory), INVALID_PARAMETER);
}

TEST(masked_select) {
  Handle h(0);
  const at::Tensor x = ramp({3, 4}).t();
  const at::Tensor m = x.gt(0);
  DeviceTensor in(x);
  DeviceTensor mask(m);
  DeviceTensor out(at::zeros({12}));
  MaskedSelect op;
  CHECK_OK(op.Run(h, out, in, mask, no_memory));
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  CHECK_OK(out.desc.GetNdInfo(dims, strides));
  CHECK((dims == std::vector<int64_t>{m.sum().item<int64_t>()}));
  CHECK((strides == std::vector<int64_t>{1}));
  CHECK(at::equal(out.read().narrow(0, 0, dims[0]), x.masked_select(m)));
}

TEST(masked_scatter) {
  Handle h(0);
  const at::Tensor x = ramp({3, 4});
  const at::Tensor m = x.gt(0);
  const at::Tensor s = ramp({12}) + 100;
  DeviceTensor inout(x);
  DeviceTensor mask(m);
  DeviceTensor src(s);
  MaskedScatter op;
  CHECK_OK(op.Run(h, inout, mask, src, no_memory));
  CHECK(at::equal(inout.read(), x.masked_scatter(m, s)));
}

TEST(gather) {
  Handle h(0);
  const at::Tensor x = ramp({4, 5});
  for (at::ScalarType type : {at::kLong, at::kInt}) {
    Gather op;
    CHECK_OK(op.SetAxis(1));
    CHECK_OK(op.SetMode(Gather::Mode::GATHER_ELEMENTS));
    const at::Tensor elements = at::tensor({0, 4, 2, 2, 1, 1}).reshape({3, 2}).to(type);
    DeviceTensor in(x);
    DeviceTensor index(elements);
    DeviceTensor out(at::zeros({3, 2}));
    CHECK_OK(op.Run(h, out, index, in, no_memory));
    CHECK(at::equal(out.read(), x.gather(1, elements.to(at::kLong))));
    CHECK_OK(op.SetMode(Gather::Mode::GATHER));
    const at::Tensor rows = at::tensor({3, 0, 3}).to(type);
    CHECK_OK(op.SetAxis(0));
    DeviceTensor row_index(rows);
    DeviceTensor taken(at::zeros({3, 5}));
    CHECK_OK(op.Run(h, taken, row_index, in));
    CHECK(at::equal(taken.read(), x.index_select(0, rows.to(at::kLong))));
    DeviceTensor outside(at::tensor({3, 0, 4}).to(type));
    CHECK_STATUS(op.Run(h, taken, outside, in), EXECUTION_FAILED);
  }
  Gather op;
  CHECK_OK(op.SetMode(Gather::Mode::GATHER));
  DeviceTensor in(x);
  DeviceTensor wrong(at::zeros({4, 4}));
  DeviceTensor index(at::tensor({0, 1}));
  CHECK_STATUS(op.Run(h, wrong, index, in), INVALID_PARAMETER);
}

TEST(scatter) {
  Handle h(0);
  const at::Tensor x = ramp({4, 5});
  const at::Tensor index = at::tensor({0, 1, 2, 0, 0, 3}).reshape({2, 3});
  const at::Tensor src = ramp({3, 4}) + 50;
  for (bool add : {false, true}) {
    Scatter op;
    CHECK_OK(op.SetMode(add ? Scatter::Mode::ADD : Scatter::Mode::UPDATE_ONLY));
    DeviceTensor out(x);
    DeviceTensor i(index);
    DeviceTensor s(src);
    CHECK_OK(op.Run(h, out, i, s, 0, no_memory));
    CHECK_CLOSE(out.read(), add ? x.scatter_add(0, index, src) : x.scatter(0, index, src), 1e-6);
    DeviceTensor outside(index + 2);
    CHECK_STATUS(op.Run(h, out, outside, s, 0, no_memory), EXECUTION_FAILED);
    CHECK_STATUS(op.Run(h, out, i, s, 2, no_memory), INVALID_PARAMETER);
  }
}

TEST(sort) {
  Handle h(0);
  const at::Tensor x = ramp({3, 7}).t();
  for (bool descending : {false, true}) {
    for (int dim : {0, 1}) {
      Sort op;
      CHECK_OK(op.SetDim(dim));
      CHECK_OK(op.SetDescending(descending));
      CHECK_OK(op.SetStable(true));
      DeviceTensor in(x);
      DeviceTensor values(at::zeros(x.sizes()));
      DeviceTensor indices(at::zeros(x.sizes(), at::kLong));
      CHECK_OK(op.Run(h, values, indices, in, no_memory));
      auto [v, i] = x.sort(/*stable=*/true, dim, descending);
      CHECK(at::equal(values.read(), v));
      CHECK(at::equal(indices.read(), i));
    }
  }
}

TEST(sort_by_key) {
  Handle h(0);
  const at::Tensor keys = at::tensor({3, 1, 2, 5, 4}).to(at::kInt);
  const at::Tensor data = ramp({5});
  DeviceTensor key_in(keys);
  DeviceTensor value_in(data);
  DeviceTensor key_out(at::zeros({5}, at::kInt));
  DeviceTensor value_out(at::zeros({5}));
  SortByKey op;
  CHECK_OK(op.SetDescending(true));
  CHECK_OK(op.Run(h, key_out, value_out, key_in, value_in, no_memory));
  CHECK(at::equal(key_out.read(), at::tensor({5, 4, 3, 2, 1}).to(at::kInt)));
  CHECK(at::equal(value_out.read(), data.index_select(0, at::tensor({3, 4, 0, 2, 1}))));
}

TEST(top_k) {
  Handle h(0);
  const at::Tensor x = at::tensor({5, 1, 4, 2, 3, 9, 7, 8, 6, 0}).to(at::kFloat).reshape({2, 5});
  DeviceTensor in(x);
  DeviceTensor values(at::zeros({2, 2}));
  DeviceTensor indices(at::zeros({2, 2}, at::kLong));
  TopK op;
  CHECK_STATUS(op.SetK(0), INVALID_PARAMETER);
  CHECK_OK(op.SetK(2));
  CHECK_OK(op.SetDim(1));
  CHECK_OK(op.SetLargest(false));
  CHECK_OK(op.SetSorted(true));
  CHECK_OK(op.Run(h, values, indices, in, no_memory));
  CHECK(at::equal(values.read(), at::tensor({1, 2, 0, 6}).to(at::kFloat).reshape({2, 2})));
  CHECK(at::equal(indices.read(), at::tensor({1, 3, 4, 3}).reshape({2, 2})));
  CHECK_OK(op.SetK(6));
  CHECK_STATUS(op.Run(h, values, indices, in, no_memory), INVALID_PARAMETER);
}
