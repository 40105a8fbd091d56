#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/where.h>

#include "Internal.h"
#include "Takes.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;

const char* name(Ternary::Mode mode) {
  switch (mode) {
    case Ternary::Mode::ADDCMUL:
      return "ADDCMUL";
    case Ternary::Mode::ADDCMUL_ALPHA:
      return "ADDCMUL_ALPHA";
    case Ternary::Mode::ADDCDIV:
      return "ADDCDIV";
    case Ternary::Mode::ADDCDIV_ALPHA:
      return "ADDCDIV_ALPHA";
    case Ternary::Mode::CLAMP:
      return "CLAMP";
    case Ternary::Mode::SELECT:
      return "SELECT";
  }
  return nullptr;
}

void check_types(Ternary::Mode mode, Type out, Type a, Type b, Type c) {
  require(out == b && b == c, "out, b and c must have one type");
  if (mode == Ternary::Mode::SELECT) {
    require(a == Type::BOOL, "the condition must be BOOL");
    return;
  }
  require(a == b, "a, b and c must have one type");
  const bool divides = mode == Ternary::Mode::ADDCDIV || mode == Ternary::Mode::ADDCDIV_ALPHA;
  require_taken(divides ? Takes::FLOATING : Takes::NUMBERS, b);
}

void compute(Ternary::Mode mode, at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
             const at::Tensor& c, const at::Scalar& alpha) {
  switch (mode) {
    case Ternary::Mode::ADDCMUL:
      at::addcmul_out(out, a, b, c);
      return;
    case Ternary::Mode::ADDCMUL_ALPHA:
      at::addcmul_out(out, a, b, c, alpha);
      return;
    case Ternary::Mode::ADDCDIV:
      at::addcdiv_out(out, a, b, c);
      return;
    case Ternary::Mode::ADDCDIV_ALPHA:
      at::addcdiv_out(out, a, b, c, alpha);
      return;
    case Ternary::Mode::CLAMP:
      at::clamp_out(out, a, b, c);
      return;
    case Ternary::Mode::SELECT:
      at::where_out(out, a, b, c);
      return;
  }
}

}  // namespace

Status Ternary::SetMode(Mode mode) {
  if (name(mode) == nullptr) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Ternary::SetAlpha(double alpha) {
  alpha_.set(alpha);
  return Status::SUCCESS;
}

Status Ternary::SetAlpha(int64_t alpha) {
  alpha_.set(alpha);
  return Status::SUCCESS;
}

Status Ternary::Run(Handle& h, Tensor& out, const Tensor& a, const Tensor& b,
                    const Tensor& c) const {
  return Call(h, Class::TERNARY, "Ternary::Run", mode_ ? name(*mode_) : nullptr)
      .out("out", out)
      .in("a", a)
      .in("b", b)
      .in("c", c)
      .run([&](Call& call) -> Work {
        require(mode_.has_value(), "no mode set");
        check_types(*mode_, type(out), type(a), type(b), type(c));
        const bool uses_alpha = *mode_ == Mode::ADDCMUL_ALPHA || *mode_ == Mode::ADDCDIV_ALPHA;
        return [mode = *mode_, o = call.alias(out), x = call.alias_expanded(a, dims(out)),
                y = call.alias_expanded(b, dims(out)), z = call.alias_expanded(c, dims(out)),
                alpha = uses_alpha ? number(alpha_, type(b)) : at::Scalar(1)]() mutable {
          compute(mode, o, x, y, z, alpha);
        };
      });
}

}  // namespace musa::dnn
