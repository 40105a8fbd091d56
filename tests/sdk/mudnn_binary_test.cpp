// muDNN's Binary and Ternary against <cmath> in double and ATen.
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

const std::vector<double> kReal = {-2.5, -1.5, -0.75, -0.5, 0.25, 0.5, 1.5, 3};
const std::vector<double> kPositive = {0.125, 0.25, 0.5, 1, 1.5, 2, 3, 4};
const std::vector<double> kUnit = {-1, -0.75, -0.5, 0, 0.25, 0.5, 0.75, 1};

}  // namespace

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

const Binary::Mode kDivisions[] = {Binary::Mode::FLOORDIV, Binary::Mode::TRUNCATEDIV,
                                   Binary::Mode::FLOORMOD, Binary::Mode::TRUNCATEMOD};

TEST_WITH_ENV(integer_division_by_zero_is_a_status, "MUSA_LAUNCH_BLOCKING=1") {
  Handle h(0);
  Binary op;
  DeviceTensor ones(at::ones({3}, at::kInt));
  DeviceTensor zeros(at::zeros({3}, at::kInt));
  DeviceTensor out(at::zeros({3}, at::kInt));
  for (const Binary::Mode mode : kDivisions) {
    CHECK_OK(op.SetMode(mode));
    CHECK_STATUS(op.Run(h, out, ones, zeros), EXECUTION_FAILED);
    CHECK_OK(op.Run(h, out, ones, ones));
  }
}

// A card writes something, and goes on.
TEST_WITH_ENV(integer_division_by_zero_later_breaks_nothing, "MUSA_LAUNCH_BLOCKING=0") {
  Handle h(0);
  Binary op;
  for (const at::ScalarType dtype : {at::kChar, at::kShort, at::kInt, at::kLong, at::kByte}) {
    DeviceTensor sevens(at::full({2, 3}, 7, dtype));
    DeviceTensor divisors(at::arange(3).to(dtype));
    const std::vector<std::vector<int64_t>> rest = {{7, 3}, {7, 3}, {0, 1}, {0, 1}};
    for (size_t i = 0; i < std::size(kDivisions); ++i) {
      DeviceTensor out(at::zeros({2, 3}, dtype));
      CHECK_OK(op.SetMode(kDivisions[i]));
      CHECK_OK(op.Run(h, out, sevens, divisors));
      CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
      const at::Tensor row = at::tensor({dtype == at::kByte ? 255L : -1L, rest[i][0], rest[i][1]});
      CHECK(at::equal(out.read(), row.to(dtype).expand({2, 3})));
    }
  }
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
