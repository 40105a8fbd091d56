// Every mode of muDNN in every type, on zeros: what the library cannot compute it refuses at the
// call, whether or not work runs later, and a divisor of zero is no fault of a card.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "mudnn_forms.h"
#include "musa_host.h"

using namespace forms;
using check::DeviceTensor;

namespace {

using Type = Tensor::Type;

constexpr Type kTypes[] = {Type::HALF,  Type::FLOAT, Type::DOUBLE,   Type::BFLOAT16, Type::INT8,
                           Type::INT16, Type::INT32, Type::INT64,    Type::UINT8,    Type::UINT64,
                           Type::BOOL,  Type::QINT8, Type::FP8_E5M2, Type::FP8_E4M3};

// The form in each mode that the op's setter takes.
template <class Op, class Mode, class... Arguments>
void add_modes(std::vector<Form>& all, const char* name, const char* operands, Op op,
               Status (Op::*set)(Mode), Status (Op::*run)(Handle&, Arguments...) const) {
  for (int mode = 0; (op.*set)(static_cast<Mode>(mode)) == Status::SUCCESS; ++mode) {
    all.push_back(form(name, operands, op, run));
    all.back().name += " in mode " + std::to_string(mode);
  }
}

std::vector<Form> forms_in_every_mode() {
  std::vector<Form> all;
  Reduce reduce;
  (void)reduce.SetDim({1});
  add_modes(all, "Unary::Run", "f2,3 f2,3", Unary(), &Unary::SetMode, &Unary::Run);
  add_modes(all, "Binary::Run", "f2,3 f2,3 f2,3", Binary(), &Binary::SetMode, &Binary::Run);
  add_modes(all, "Ternary::Run", "f2,3 f2,3 f2,3 f2,3", Ternary(), &Ternary::SetMode,
            &Ternary::Run);
  add_modes(all, "Ternary::Run of a condition", "f2,3 b2,3 f2,3 f2,3", Ternary(), &Ternary::SetMode,
            &Ternary::Run);
  add_modes(all, "Reduce::Run", "f2 f2,3", reduce, &Reduce::SetMode, &Reduce::Run);
  add_modes(all, "Reduce::RunIndices", "i2 f2,3", reduce, &Reduce::SetMode, &Reduce::RunIndices);
  add_modes(all, "Reduce::RunWithIndices", "f2 i2 f2,3", reduce, &Reduce::SetMode,
            &Reduce::RunWithIndices);
  add_modes(all, "Cum::Run", "f2,3 f2,3", Cum(), &Cum::SetMode, &Cum::Run);
  add_modes(all, "Softmax::Run", "f2,3 f2,3", Softmax(), &Softmax::SetMode, &Softmax::Run);
  add_modes(all, "Softmax::RunBwd", "f2,3 f2,3 f2,3", Softmax(), &Softmax::SetMode,
            &Softmax::RunBwd);
  add_modes(all, "Pooling::Run", "f1,2,3,2 f1,2,4,3 i1,2,3,2", pooling(), &Pooling::SetMode,
            &Pooling::Run);
  add_modes(all, "Pooling::RunBwd", "f1,2,4,3 f1,2,3,2 i1,2,3,2", pooling(), &Pooling::SetMode,
            &Pooling::RunBwd);
  add_modes(all, "Interpolate::Run", "f1,2,4,3 f1,2,4,3", interpolate(), &Interpolate::SetMode,
            &Interpolate::Run);
  add_modes(all, "Interpolate::RunBackward", "f1,2,4,3 f1,2,4,3", interpolate(),
            &Interpolate::SetMode, &Interpolate::RunBackward);
  add_modes(all, "Pad::Run", "f2,5 f2,3", pad(), &Pad::SetMode, &Pad::Run);
  add_modes(all, "Gather::Run", "f2,3 i2,3 f4,3", Gather(), &Gather::SetMode,
            FORMS_OVERLOAD(Gather, Run, T, C, C));
  add_modes(all, "Scatter::Run", "f4,3 i2,3 f2,3", Scatter(), &Scatter::SetMode, &Scatter::Run);
  add_modes(all, "NLLLoss::Run", "f1 f1 f2,3 i2 ?f3", NLLLoss(), &NLLLoss::SetReductionMode,
            &NLLLoss::Run);
  add_modes(all, "KLDivLoss::Run", "f1 f2,3 f2,3", KLDivLoss(), &KLDivLoss::SetReductionMode,
            &KLDivLoss::Run);
  for (const Form& each : forms::forms()) {
    if (!reads_lengths(each) && !is_query(each)) all.push_back(each);
  }
  return all;
}

void any_mode_in_any_type() {
  const Arena arena;
  size_t succeeded = 0;
  for (const Form& form : forms_in_every_mode()) {
    const std::vector<Right> rights = read_operands(form);
    for (const Type type : kTypes) {
      for (const Type result : {type, Type::BOOL, Type::INT64}) {
        Operands operands = right_use(form, arena);
        for (size_t i = 0; i < rights.size(); ++i) {
          const Type own = i == 0 ? result : rights[i].type == Type::FLOAT ? type : rights[i].type;
          if (!rights[i].dims.empty()) operands[i] = operand(arena.slot(i), rights[i].dims, own);
        }
        const std::string text = form.name + " of type " + std::to_string(static_cast<int>(type)) +
                                 " into " + std::to_string(static_cast<int>(result));
        succeeded += call(form, operands, text) == Status::SUCCESS ? 1 : 0;
        if (const musaError_t error = musaDeviceSynchronize(); error != musaSuccess) {
          check::fail(__FILE__, __LINE__, text + ": accepted, then " + musaGetErrorName(error));
        }
      }
    }
  }
  CHECK(succeeded > 1000);  // or this says nothing
}

}  // namespace

TEST_WITH_ENV(any_mode_in_any_type_gives_a_status, "MUSA_LAUNCH_BLOCKING=1") {
  any_mode_in_any_type();
}
TEST_WITH_ENV(any_mode_in_any_type_is_refused_at_the_call_or_not_at_all, "MUSA_LAUNCH_BLOCKING=0") {
  any_mode_in_any_type();
}

namespace {

template <class T>
void lowest_by_minus_one(at::ScalarType dtype) {
  Handle h(0);
  const auto lowest = static_cast<int64_t>(std::numeric_limits<T>::min());
  // Enough of them that ATen's threads share the work.
  const std::vector<int64_t> shape = {1 << 17};
  DeviceTensor out(at::empty(shape, dtype));
  DeviceTensor lhs(at::full(shape, lowest, dtype));
  DeviceTensor rhs(at::full(shape, -1, dtype));
  const auto expect = [&](int64_t value) {
    CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
    CHECK(at::equal(out.read(), at::full(shape, value, dtype)));
  };
  for (const auto& [mode, expected] :
       {std::pair(Binary::Mode::FLOORDIV, lowest), std::pair(Binary::Mode::TRUNCATEDIV, lowest),
        std::pair(Binary::Mode::FLOORMOD, int64_t{0}),
        std::pair(Binary::Mode::TRUNCATEMOD, int64_t{0})}) {
    const auto op = with_mode<Binary>(mode);
    CHECK_OK(op.Run(h, out, lhs, rhs));
    expect(expected);
  }
  for (const auto& [mode, expected] :
       {std::pair(Unary::Mode::FLOORDIV, lowest), std::pair(Unary::Mode::TRUNCATEDIV, lowest),
        std::pair(Unary::Mode::FLOORMOD, int64_t{0}),
        std::pair(Unary::Mode::TRUNCATEMOD, int64_t{0})}) {
    auto op = with_mode<Unary>(mode);
    CHECK_OK(op.SetAlpha(int64_t{-1}));
    CHECK_OK(op.Run(h, out, lhs));
    expect(expected);
  }
  for (const auto mode : {Unary::Mode::FLOORDIV_BY_ALPHA, Unary::Mode::TRUNCATEDIV_BY_ALPHA}) {
    auto op = with_mode<Unary>(mode);
    CHECK_OK(op.SetAlpha(lowest));
    CHECK_OK(op.Run(h, out, rhs));
    expect(lowest);
  }
}

void lowest_by_minus_one_in_every_type() {
  lowest_by_minus_one<int8_t>(at::kChar);
  lowest_by_minus_one<int16_t>(at::kShort);
  lowest_by_minus_one<int32_t>(at::kInt);
  lowest_by_minus_one<int64_t>(at::kLong);
}

}  // namespace

// The CPU's instruction traps.
TEST_WITH_ENV(the_lowest_integer_by_minus_one_wraps_around, "MUSA_LAUNCH_BLOCKING=1") {
  lowest_by_minus_one_in_every_type();
}
TEST_WITH_ENV(the_lowest_integer_by_minus_one_wraps_around_later, "MUSA_LAUNCH_BLOCKING=0") {
  lowest_by_minus_one_in_every_type();
}

TEST_WITH_ENV(a_number_by_zeros_later_breaks_nothing, "MUSA_LAUNCH_BLOCKING=0") {
  Handle h(0);
  for (const at::ScalarType dtype : {at::kChar, at::kShort, at::kInt, at::kLong, at::kByte}) {
    DeviceTensor out(at::zeros({2}, dtype));
    DeviceTensor in(at::tensor({0L, 2L}).to(dtype));
    for (const auto mode : {Unary::Mode::FLOORDIV_BY_ALPHA, Unary::Mode::TRUNCATEDIV_BY_ALPHA}) {
      auto op = with_mode<Unary>(mode);
      CHECK_OK(op.SetAlpha(int64_t{6}));
      CHECK_OK(op.Run(h, out, in));
      CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
      CHECK(at::equal(out.read(), at::tensor({dtype == at::kByte ? 255L : -1L, 3L}).to(dtype)));
    }
  }
}

namespace {

void no_form_runs_after_an_error() {
  const Arena arena;
  std::string ran;
  std::vector<Operands> operands;
  const std::vector<Form> all = forms::forms();
  for (const Form& form : all) operands.push_back(right_use(form, arena));
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_query(all[i])) continue;  // nothing runs for them
    if (call(all[i], operands[i], all[i].name) != Status::EXECUTION_FAILED) {
      ran += "\n  " + all[i].name;
    }
  }
  if (!ran.empty()) check::fail(__FILE__, __LINE__, "not refused:" + ran);
}

}  // namespace

TEST_WITH_ENV(after_a_sticky_error_every_form_fails, "MUSA_LAUNCH_BLOCKING=1") {
  no_form_runs_after_an_error();
}
TEST_WITH_ENV(after_a_sticky_error_every_form_fails_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  no_form_runs_after_an_error();
}
