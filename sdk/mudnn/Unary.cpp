#include <ATen/ScalarOps.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/add.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/div.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/le.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>

#include <cmath>

#include "Direct.h"
#include "Division.h"
#include "Internal.h"
#include "Takes.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;
using at::Scalar;

// Type of the result.
enum class Gives { SAME, BOOL, ANYTHING };

struct Mode {
  Unary::Mode mode;
  const char* name;
  Takes takes;
  Gives gives;
  void (*compute)(at::Tensor& out, const at::Tensor& in, const Scalar& alpha, const Scalar& beta,
                  bool later);
};

// A scalar as the 0-dim operand that keeps the tensor's type.
at::Tensor wrapped(const Scalar& value) { return at::native::wrapped_scalar_tensor(value); }

void hard_sigmoid(at::Tensor& out, const at::Tensor& in, double slope, double offset) {
  // CUDA's kernel has a sixth as a float, which is too little for doubles.
  if (slope == 1.0 / 6.0 && offset == 0.5 && in.scalar_type() != at::kDouble) {
    at::hardsigmoid_out(out, in);
    return;
  }
  const bool low = in.scalar_type() == at::kHalf || in.scalar_type() == at::kBFloat16;
  at::Tensor wide = low ? in.to(at::kFloat) : in;
  out.copy_(wide.mul(slope).add_(offset).clamp_(0, 1));
}

void hard_swish(at::Tensor& out, const at::Tensor& in) {
  if (in.scalar_type() != at::kDouble) {
    at::hardswish_out(out, in);
    return;
  }
  out.copy_(in.add(3).clamp_(0, 6).mul_(in).div_(6));
}

#define COMPUTE(...)                                                              \
  [](at::Tensor& out, const at::Tensor& in, [[maybe_unused]] const Scalar& alpha, \
     [[maybe_unused]] const Scalar& beta, [[maybe_unused]] bool later) { __VA_ARGS__; }
#define MODE(name, takes, gives, ...) \
  {Unary::Mode::name, #name, Takes::takes, Gives::gives, COMPUTE(__VA_ARGS__)}

// In the order of the enumeration.
const Mode kModes[] = {
    MODE(ABS, NUMBERS, SAME, at::abs_out(out, in)),
    MODE(ACOS, FLOATING, SAME, at::acos_out(out, in)),
    MODE(ADD, NUMBERS, SAME, at::add_out(out, in, wrapped(alpha))),
    MODE(ATAN, FLOATING, SAME, at::atan_out(out, in)),
    MODE(CAST, ANYTHING, ANYTHING, out.copy_(in)),
    MODE(CEIL, FLOATING, SAME, at::ceil_out(out, in)),
    MODE(CLIP, NUMBERS, SAME, at::clamp_out(out, in, alpha, beta)),
    MODE(COS, FLOATING, SAME, at::cos_out(out, in)),
    MODE(ELU, FLOATING, SAME, at::elu_out(out, in, alpha)),
    MODE(EQ, ANYTHING, BOOL, at::eq_out(out, in, alpha)),
    MODE(ERF, FLOATING, SAME, at::erf_out(out, in)),
    MODE(EXP, FLOATING, SAME, at::exp_out(out, in)),
    MODE(FLOOR, FLOATING, SAME, at::floor_out(out, in)),
    MODE(FLOORDIV, DIVISORS, SAME, divide(Division::FLOOR, out, in, wrapped(alpha), later)),
    MODE(FLOORDIV_BY_ALPHA, DIVISORS, SAME,
         divide(Division::FLOOR, out, wrapped(alpha), in, later)),
    MODE(FLOORMOD, DIVISORS, SAME,
         divide(Division::FLOOR_REMAINDER, out, in, wrapped(alpha), later)),
    MODE(GE, ORDERED, BOOL, at::ge_out(out, in, alpha)),
    MODE(GELU, FLOATING, SAME, at::gelu_out(out, in, "none")),
    MODE(GELU_TANH, FLOATING, SAME, at::gelu_out(out, in, "tanh")),
    MODE(GT, ORDERED, BOOL, at::gt_out(out, in, alpha)),
    MODE(HARDSIGMOID, FLOATING, SAME, hard_sigmoid(out, in, alpha.toDouble(), beta.toDouble())),
    MODE(HARDSWISH, FLOATING, SAME, hard_swish(out, in)),
    MODE(IDENTITY, ANYTHING, SAME, out.copy_(in)),
    MODE(IS_INF, ALL_NUMBERS, BOOL, out.copy_(at::isinf(in))),
    MODE(IS_NAN, ALL_NUMBERS, BOOL, at::ne_out(out, in, in)),
    MODE(LE, ORDERED, BOOL, at::le_out(out, in, alpha)),
    MODE(LEAKY_RELU, FLOATING, SAME, at::leaky_relu_out(out, in, alpha)),
    MODE(LOG, FLOATING, SAME, at::log_out(out, in)),
    MODE(LOG10, FLOATING, SAME, at::log10_out(out, in)),
    MODE(LOG1P, FLOATING, SAME, at::log1p_out(out, in)),
    MODE(LOG2, FLOATING, SAME, at::log2_out(out, in)),
    MODE(LT, ORDERED, BOOL, at::lt_out(out, in, alpha)),
    MODE(MISH, FLOATING, SAME, at::mish_out(out, in)),
    MODE(MUL, ALL_NUMBERS, SAME, at::mul_out(out, in, wrapped(alpha))),
    MODE(NE, ANYTHING, BOOL, at::ne_out(out, in, alpha)),
    MODE(POW, ALL_NUMBERS, SAME, at::pow_out(out, in, alpha)),
    MODE(RECIPROCAL, FLOATING, SAME, at::reciprocal_out(out, in)),
    MODE(RELU, NUMBERS, SAME, at::clamp_min_out(out, in, 0)),
    MODE(RELU6, NUMBERS, SAME, at::clamp_out(out, in, 0, 6)),
    MODE(ROUND, FLOATING, SAME, at::round_out(out, in)),
    MODE(RSQRT, FLOATING, SAME, at::rsqrt_out(out, in)),
    MODE(SIGMOID, FLOATING, SAME, at::sigmoid_out(out, in)),
    MODE(SIGN, NUMBERS, SAME, at::sign_out(out, in)),
    MODE(SILU, FLOATING, SAME, at::silu_out(out, in)),
    MODE(SIN, FLOATING, SAME, at::sin_out(out, in)),
    MODE(SOFTPLUS, FLOATING, SAME, at::softplus_out(out, in, alpha, beta)),
    MODE(SQRT, FLOATING, SAME, at::sqrt_out(out, in)),
    MODE(SUB, NUMBERS, SAME, at::sub_out(out, in, wrapped(alpha))),
    MODE(SUB_BY_ALPHA, NUMBERS, SAME, at::sub_out(out, wrapped(alpha), in)),
    MODE(TAN, FLOATING, SAME, at::tan_out(out, in)),
    MODE(TANH, FLOATING, SAME, at::tanh_out(out, in)),
    MODE(TRUEDIV, FLOATING, SAME, at::div_out(out, in, wrapped(alpha))),
    MODE(TRUEDIV_BY_ALPHA, FLOATING, SAME, at::div_out(out, wrapped(alpha), in)),
    MODE(TRUNCATEDIV, DIVISORS, SAME, divide(Division::TRUNCATE, out, in, wrapped(alpha), later)),
    MODE(TRUNCATEDIV_BY_ALPHA, DIVISORS, SAME,
         divide(Division::TRUNCATE, out, wrapped(alpha), in, later)),
    MODE(TRUNCATEMOD, DIVISORS, SAME,
         divide(Division::TRUNCATE_REMAINDER, out, in, wrapped(alpha), later)),
};
#undef MODE
#undef COMPUTE

constexpr auto kModeCount = static_cast<size_t>(Unary::Mode::TRUNCATEMOD) + 1;
static_assert(std::size(kModes) == kModeCount, "one row per mode");

const Mode& row(Unary::Mode mode) { return kModes[static_cast<size_t>(mode)]; }

void check_types(const Mode& mode, Type out, Type in) {
  require_taken(mode.takes, in);
  if (mode.gives == Gives::SAME) require(out == in, "out must have the type of in");
  if (mode.gives == Gives::BOOL) require(out == Type::BOOL, "out must be BOOL");
}

bool divides_by_alpha(Unary::Mode mode) {
  return mode == Unary::Mode::FLOORDIV || mode == Unary::Mode::FLOORMOD ||
         mode == Unary::Mode::TRUNCATEDIV || mode == Unary::Mode::TRUNCATEMOD;
}

// What these modes read in the operand's own type it must hold.
void require_held(const Scalar& value, Type type) {
  const bool held = type == Type::HALF ? !c10::overflows<c10::Half, double>(value.toDouble())
                    : type == Type::BFLOAT16
                        ? !c10::overflows<c10::BFloat16, double>(value.toDouble())
                        : true;
  require(held, "the operand's type does not hold its parameter");
}

void check_parameters(Unary::Mode mode, Type in, const Scalar& alpha, const Scalar& beta) {
  if (is_integral(in)) {
    require(!divides_by_alpha(mode) || alpha.toLong() != 0, "division by zero");
    require(mode != Unary::Mode::POW || alpha.toLong() >= 0, "an integer to a negative power");
  }
  if (mode == Unary::Mode::POW || mode == Unary::Mode::CLIP) require_held(alpha, in);
  if (mode == Unary::Mode::CLIP) require_held(beta, in);
}

bool compute_directly(const Call& c, Unary::Mode mode, const Tensor& out, const Tensor& in,
                      const detail::Number& alpha) {
  const int64_t n = direct_elements(out);
  if (n < 0 || !is_direct_map(out, n, in)) return false;
  const auto a = static_cast<float>(alpha.as_double);
  switch (mode) {
    case Unary::Mode::ABS:
      return map_directly(c, DirectFunction::ABS, n, out, in);
    case Unary::Mode::RELU:
      return map_directly(c, DirectFunction::RELU, n, out, in);
    case Unary::Mode::ADD:
      return map_directly(c, DirectFunction::ADD, n, out, in, a);
    case Unary::Mode::SUB:
      return map_directly(c, DirectFunction::SUB, n, out, in, a);
    case Unary::Mode::MUL:
      return map_directly(c, DirectFunction::MUL, n, out, in, a);
    default:
      return false;
  }
}

}  // namespace

Status Unary::SetMode(Mode mode) {
  if (static_cast<size_t>(mode) >= kModeCount) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Unary::SetAlpha(double alpha) {
  alpha_.set(alpha);
  return Status::SUCCESS;
}

Status Unary::SetAlpha(int64_t alpha) {
  alpha_.set(alpha);
  return Status::SUCCESS;
}

Status Unary::SetBeta(double beta) {
  beta_.set(beta);
  return Status::SUCCESS;
}

Status Unary::SetBeta(int64_t beta) {
  beta_.set(beta);
  return Status::SUCCESS;
}

Status Unary::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::UNARY, "Unary::Run", mode_ ? row(*mode_).name : nullptr)
      .out("out", out)
      .in("in", in)
      .run(
          [&](Call& c) -> Work {
            require(mode_.has_value(), "no mode set");
            const auto& mode = row(*mode_);
            check_types(mode, type(out), type(in));
            require(same_shape(out, in), "out and in must have one shape");
            const Scalar alpha = number(alpha_, type(in)), beta = number(beta_, type(in));
            check_parameters(*mode_, type(in), alpha, beta);
            const bool later = mode.takes == Takes::DIVISORS && runs_later(c);
            return [compute = mode.compute, later, o = c.alias(out), i = c.alias(in), alpha,
                    beta]() mutable { compute(o, i, alpha, beta, later); };
          },
          [&](Call& c) { return mode_ && compute_directly(c, *mode_, out, in, alpha_); });
}

}  // namespace musa::dnn
