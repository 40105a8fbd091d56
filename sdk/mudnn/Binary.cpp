#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>

#include "Direct.h"
#include "Division.h"
#include "Internal.h"
#include "Takes.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;

struct Mode {
  Binary::Mode mode;
  const char* name;
  Takes takes;
  bool gives_bool;
  void (*compute)(at::Tensor& out, const at::Tensor& lhs, const at::Tensor& rhs,
                  const at::Scalar& alpha, bool later);
};

#define MODE(name, takes, gives_bool, ...)                           \
  {Binary::Mode::name, #name, Takes::takes, gives_bool,              \
   [](at::Tensor& out, const at::Tensor& lhs, const at::Tensor& rhs, \
      [[maybe_unused]] const at::Scalar& alpha, [[maybe_unused]] bool later) { __VA_ARGS__; }}

// In the order of the enumeration.
const Mode kModes[] = {
    MODE(ADD, NUMBERS, false, at::add_out(out, lhs, rhs)),
    MODE(ADD_ALPHA, NUMBERS, false, at::add_out(out, lhs, rhs, alpha)),
    MODE(SUB, NUMBERS, false, at::sub_out(out, lhs, rhs)),
    MODE(SUB_ALPHA, NUMBERS, false, at::sub_out(out, lhs, rhs, alpha)),
    MODE(MUL, ALL_NUMBERS, false, at::mul_out(out, lhs, rhs)),
    MODE(TRUEDIV, FLOATING, false, at::div_out(out, lhs, rhs)),
    MODE(FLOORDIV, DIVISORS, false, divide(Division::FLOOR, out, lhs, rhs, later)),
    MODE(TRUNCATEDIV, DIVISORS, false, divide(Division::TRUNCATE, out, lhs, rhs, later)),
    MODE(FLOORMOD, DIVISORS, false, divide(Division::FLOOR_REMAINDER, out, lhs, rhs, later)),
    MODE(TRUNCATEMOD, DIVISORS, false, divide(Division::TRUNCATE_REMAINDER, out, lhs, rhs, later)),
    MODE(POW, NUMBERS, false, at::pow_out(out, lhs, rhs)),
    MODE(MAX, NUMBERS, false, at::maximum_out(out, lhs, rhs)),
    MODE(MIN, NUMBERS, false, at::minimum_out(out, lhs, rhs)),
    MODE(EQ, ANYTHING, true, at::eq_out(out, lhs, rhs)),
    MODE(NE, ANYTHING, true, at::ne_out(out, lhs, rhs)),
    MODE(LT, ORDERED, true, at::lt_out(out, lhs, rhs)),
    MODE(LE, ORDERED, true, at::le_out(out, lhs, rhs)),
    MODE(GT, ORDERED, true, at::gt_out(out, lhs, rhs)),
    MODE(GE, ORDERED, true, at::ge_out(out, lhs, rhs)),
    MODE(LOGICAL_AND, ORDERED, true, at::logical_and_out(out, lhs, rhs)),
    MODE(LOGICAL_OR, ORDERED, true, at::logical_or_out(out, lhs, rhs)),
    MODE(LOGICAL_XOR, ORDERED, true, at::logical_xor_out(out, lhs, rhs)),
    MODE(SIGMOID_BW, FLOATING, false, at::sigmoid_backward_out(out, lhs, rhs)),
    MODE(SILU_BW, FLOATING, false, at::silu_backward_out(out, lhs, rhs)),
    MODE(TANH_BW, FLOATING, false, at::tanh_backward_out(out, lhs, rhs)),
    MODE(THRESHOLD_BW, NUMBERS, false, at::threshold_backward_out(out, lhs, rhs, alpha)),
    MODE(GELU_NONE_BW, FLOATING, false, at::gelu_backward_out(out, lhs, rhs, "none")),
    MODE(GELU_TANH_BW, FLOATING, false, at::gelu_backward_out(out, lhs, rhs, "tanh")),
    MODE(LEAKY_RELU_BW, FLOATING, false,
         at::leaky_relu_backward_out(out, lhs, rhs, alpha, /*self_is_result=*/false)),
};
#undef MODE

constexpr auto kModeCount = static_cast<size_t>(Binary::Mode::LEAKY_RELU_BW) + 1;
static_assert(std::size(kModes) == kModeCount, "one row per mode");

const Mode& row(Binary::Mode mode) { return kModes[static_cast<size_t>(mode)]; }

void check_types(const Mode& mode, Type out, Type lhs, Type rhs) {
  require(lhs == rhs, "lhs and rhs must have one type");
  require_taken(mode.takes, lhs);
  require(out == (mode.gives_bool ? Type::BOOL : lhs),
          mode.gives_bool ? "out must be BOOL" : "out must have the type of its operands");
}

// Every dimension of out must come from one of the operands.
void check_is_broadcast_shape(const Tensor& out, const Tensor& lhs, const Tensor& rhs) {
  require(rank(out) == std::max(rank(lhs), rank(rhs)), "out must have the broadcast shape");
  for (int64_t d = 1; d <= rank(out); ++d) {
    const int64_t left = d <= rank(lhs) ? dims(lhs)[rank(lhs) - d] : 1;
    const int64_t right = d <= rank(rhs) ? dims(rhs)[rank(rhs) - d] : 1;
    require(dims(out)[rank(out) - d] == (left == 1 ? right : left),
            "out must have the broadcast shape");
  }
}

bool compute_directly(const Call& c, Binary::Mode mode, const Tensor& out, const Tensor& lhs,
                      const Tensor& rhs) {
  const int64_t n = direct_elements(out);
  if (n < 0 || !is_direct_map(out, n, lhs) || !is_direct_map(out, n, rhs)) return false;
  switch (mode) {
    case Binary::Mode::ADD:
      return map_directly(c, DirectFunction::ADD, n, out, lhs, rhs);
    case Binary::Mode::SUB:
      return map_directly(c, DirectFunction::SUB, n, out, lhs, rhs);
    case Binary::Mode::MUL:
      return map_directly(c, DirectFunction::MUL, n, out, lhs, rhs);
    case Binary::Mode::TRUEDIV:
      return map_directly(c, DirectFunction::DIV, n, out, lhs, rhs);
    default:
      return false;
  }
}

}  // namespace

Status Binary::SetMode(Mode mode) {
  if (static_cast<size_t>(mode) >= kModeCount) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Binary::SetAlpha(double alpha) {
  alpha_.set(alpha);
  return Status::SUCCESS;
}

Status Binary::SetAlpha(int64_t alpha) {
  alpha_.set(alpha);
  return Status::SUCCESS;
}

Status Binary::Run(Handle& h, Tensor& out, const Tensor& lhs, const Tensor& rhs) const {
  return Call(h, Class::BINARY, "Binary::Run", mode_ ? row(*mode_).name : nullptr)
      .out("out", out)
      .in("lhs", lhs)
      .in("rhs", rhs)
      .run(
          [&](Call& c) -> Work {
            require(mode_.has_value(), "no mode set");
            const auto& mode = row(*mode_);
            check_types(mode, type(out), type(lhs), type(rhs));
            check_is_broadcast_shape(out, lhs, rhs);
            const bool later = mode.takes == Takes::DIVISORS && runs_later(c);
            return
                [compute = mode.compute, later, o = c.alias(out),
                 l = c.alias_expanded(lhs, dims(out)), r = c.alias_expanded(rhs, dims(out)),
                 alpha = number(alpha_, type(lhs))]() mutable { compute(o, l, r, alpha, later); };
          },
          [&](Call& c) { return mode_ && compute_directly(c, *mode_, out, lhs, rhs); });
}

}  // namespace musa::dnn
