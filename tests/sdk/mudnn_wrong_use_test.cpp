// Wrong use of muDNN, class by class and operand by operand (mudnn_forms.h is the table): always a
// Status, never an exception, a fault or a hang, and after each the next right call works. What the
// library refuses it refuses at the call, whether or not work runs later: with
// MUSA_LAUNCH_BLOCKING=0 nothing is left to fail on the queue.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mudnn_forms.h"
#include "musa_host.h"

using namespace forms;

namespace {

using Type = Tensor::Type;

constexpr Type kTypes[] = {Type::HALF,  Type::FLOAT, Type::DOUBLE,   Type::BFLOAT16, Type::INT8,
                           Type::INT16, Type::INT32, Type::INT64,    Type::UINT8,    Type::UINT64,
                           Type::BOOL,  Type::QINT8, Type::FP8_E5M2, Type::FP8_E4M3};

constexpr Tensor::Format kFormats[] = {Tensor::Format::NCW,   Tensor::Format::NCHW,
                                       Tensor::Format::NHWC,  Tensor::Format::NCDHW,
                                       Tensor::Format::NDHWC, Tensor::Format::DHWCN};

// All that is wrong is worth knowing, so a case goes on and fails at its end.
class Findings {
 public:
  void add(const std::string& finding) { text_ += "\n  " + finding; }
  void report() const {
    if (!text_.empty()) check::fail(__FILE__, __LINE__, text_);
  }

 private:
  std::string text_;
};

std::string where(const Form& form, size_t operand, const std::string& what) {
  return form.name + " with operand " + std::to_string(operand) + " " + what;
}

// What hangs on the values of operands cannot be refused at the call where work runs later.
bool fails_later(const Form& form) { return musa::host::asynchronous() && reads_lengths(form); }

// Nothing that was accepted fails later.
void expect_done(const std::string& what) {
  if (const musaError_t error = musaDeviceSynchronize(); error != musaSuccess) {
    check::fail(__FILE__, __LINE__, what + ": accepted, then " + musaGetErrorName(error));
  }
}

void expect_right_use_works(const Form& form, const Arena& arena, const std::string& after) {
  Operands operands = right_use(form, arena);
  if (call(form, operands, after) != Status::SUCCESS) {
    check::fail(__FILE__, __LINE__, "after " + after + ": the right use is refused");
  }
  expect_done("after " + after);
}

// Runs the form with one operand of its right use replaced.
Status call_with(const Form& form, const Arena& arena, size_t place, const Tensor& wrong,
                 const std::string& what) {
  Operands operands = right_use(form, arena);
  operands[place] = wrong;
  const Status status = call(form, operands, what);
  expect_done(what);
  return status;
}

void absent_operands() {
  const Arena arena;
  Findings findings;
  for (const Form& form : forms::forms()) {
    if (is_query(form)) continue;
    const std::vector<Right> rights = read_operands(form);
    for (size_t i = 0; i < rights.size(); ++i) {
      const std::string text = where(form, i, "absent");
      const Status status = call_with(form, arena, i, Tensor(), text);
      const bool right = rights[i].paired     ? status != Status::SUCCESS
                         : rights[i].optional ? status == Status::SUCCESS
                                              : status == Status::INVALID_PARAMETER;
      if (!right) findings.add(text + ": " + std::to_string(static_cast<int>(status)));
      expect_right_use_works(form, arena, text);
    }
  }
  findings.report();
}

// Whatever the operands, an op that has a mode and was not given any does not run.
void modes_not_set() {
  const std::vector<std::pair<std::string, std::function<Status(Handle&, Operands&)>>> without = {
#define WITHOUT_MODE(name, cls, method) {name, forms::form("", "", cls(), method).run}
      WITHOUT_MODE("Unary::Run", Unary, &Unary::Run),
      WITHOUT_MODE("Binary::Run", Binary, &Binary::Run),
      WITHOUT_MODE("Ternary::Run", Ternary, &Ternary::Run),
      WITHOUT_MODE("Reduce::Run", Reduce, &Reduce::Run),
      WITHOUT_MODE("Reduce::RunIndices", Reduce, &Reduce::RunIndices),
      WITHOUT_MODE("Reduce::RunWithIndices", Reduce, &Reduce::RunWithIndices),
      WITHOUT_MODE("Cum::Run", Cum, &Cum::Run),
      WITHOUT_MODE("Softmax::Run", Softmax, &Softmax::Run),
      WITHOUT_MODE("Softmax::RunBwd", Softmax, &Softmax::RunBwd),
      WITHOUT_MODE("Pooling::Run", Pooling, &Pooling::Run),
      WITHOUT_MODE("Pooling::RunBwd", Pooling, &Pooling::RunBwd),
      WITHOUT_MODE("BatchNorm::RunPure", BatchNorm, &BatchNorm::RunPure),
      WITHOUT_MODE("BatchNorm::RunComposite", BatchNorm, &BatchNorm::RunComposite),
      WITHOUT_MODE("BatchNorm::RunBwd", BatchNorm, &BatchNorm::RunBwd),
      WITHOUT_MODE("Interpolate::Run", Interpolate, &Interpolate::Run),
      WITHOUT_MODE("Interpolate::RunBackward", Interpolate, &Interpolate::RunBackward),
      WITHOUT_MODE("Pad::Run", Pad, &Pad::Run),
      WITHOUT_MODE("Gather::Run", Gather, FORMS_OVERLOAD(Gather, Run, T, C, C)),
      WITHOUT_MODE("Scatter::Run", Scatter, &Scatter::Run),
      WITHOUT_MODE("Fill::Run", Fill, FORMS_OVERLOAD(Fill, Run, T)),
      WITHOUT_MODE("NLLLoss::Run", NLLLoss, &NLLLoss::Run),
      WITHOUT_MODE("NLLLoss::RunBwd", NLLLoss, &NLLLoss::RunBwd),
      WITHOUT_MODE("KLDivLoss::Run", KLDivLoss, &KLDivLoss::Run),
      WITHOUT_MODE("KLDivLoss::RunBwd", KLDivLoss, &KLDivLoss::RunBwd),
      WITHOUT_MODE("CrossEntropyLoss::Run", CrossEntropyLoss, &CrossEntropyLoss::Run),
      WITHOUT_MODE("CrossEntropyLoss::RunBwd", CrossEntropyLoss, &CrossEntropyLoss::RunBwd),
      // What they cannot do without, though it is called otherwise.
      WITHOUT_MODE("Convolution::Run", Convolution, &Convolution::Run),
      WITHOUT_MODE("LayerNorm::Run", LayerNorm, &LayerNorm::Run),
      WITHOUT_MODE("RMSNorm::Run", RMSNorm, &RMSNorm::Run),
      WITHOUT_MODE("ScaledDotProductAttention::RunMath", Op, &Op::RunMath),
      WITHOUT_MODE("CTCLoss::Run", CTCLoss, &CTCLoss::Run),
#undef WITHOUT_MODE
  };
  const Arena arena;
  Findings findings;
  for (const Form& form : forms::forms()) {
    for (const auto& [name, run] : without) {
      if (name != form.name) continue;
      Operands operands = right_use(form, arena);
      if (call({name, form.operands, run}, operands, name) != Status::INVALID_PARAMETER) {
        findings.add(name + " runs without a mode");
      }
      expect_done(name);
      expect_right_use_works(form, arena, name + " without a mode");
    }
  }
  findings.report();
}

// Every operand of every form in turn is something that no call can use.
void unusable_operands() {
  const Arena arena;
  Findings findings;
  const at::Tensor host_memory = at::zeros({64});
  const std::vector<int64_t> nine(9, 1);
  const auto nowhere = reinterpret_cast<void*>(uintptr_t{0x1000});
  void* const here = arena.slot(kMostOperands - 1);
  const std::vector<std::pair<std::string, Tensor>> hostile = {
      {"of rank 0", operand(here, {})},
      {"of rank 9", operand(here, nine)},
      {"without elements", operand(here, {0, 3})},
      {"of negative size", operand(here, {2, -1})},
      {"without an address", operand(nullptr, {2, 3})},
      {"in host memory", operand(host_memory.data_ptr(), {2, 3})},
      {"nowhere", operand(nowhere, {2, 3})},
      {"past its allocation", operand(here, {1 << 20})},
      {"of QINT8", operand(here, {2, 3}, Type::QINT8)},
      {"of a size that overflows", operand(here, {int64_t{1} << 40, int64_t{1} << 40})},
      {"of strides that overflow", operand(here, {2, 3}, Type::FLOAT, {int64_t{1} << 62, 1})},
  };
  for (const Form& form : forms::forms()) {
    if (is_query(form)) continue;
    const std::vector<Right> rights = read_operands(form);
    for (size_t i = 0; i < rights.size(); ++i) {
      if (rights[i].dims.empty()) continue;
      for (const auto& [what, bad] : hostile) {
        const std::string text = where(form, i, what);
        if (call_with(form, arena, i, bad, text) == Status::SUCCESS) findings.add(text + " runs");
        expect_right_use_works(form, arena, text);
      }
    }
  }
  findings.report();
}

std::string shape(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "(" : ", ") + std::to_string(dim);
  return text + ")";
}

// One operand has one element more along one of its dimensions, or a dimension more, or less, than
// it has in a right use. What fits nevertheless is listed: what broadcasts, what is larger than is
// read or written, an operand whose size the others do not determine.
const std::set<std::string> kFits = {
    "Binary::Run with operand 1 of shape (3)",
    "Binary::Run with operand 2 of shape (3)",
    "CTCLoss::Run with operand 2 of shape (5, 2, 4)",
    "CTCLoss::Run with operand 3 of shape (2, 3)",
    "CTCLoss::RunBwd with operand 3 of shape (2)",
    "CTCLoss::RunBwd with operand 3 of shape (2, 3)",
    "Fill::Run with operand 0 of shape (2, 3, 2)",
    "Fill::Run with operand 0 of shape (2, 4)",
    "Fill::Run with operand 0 of shape (3)",
    "Fill::Run with operand 0 of shape (3, 3)",
    "Fill::Run(mask) with operand 1 of shape (3)",
    "Gather::Run with operand 2 of shape (4, 4)",
    "Gather::Run with operand 2 of shape (5, 3)",
    "Gather::Run(M) with operand 2 of shape (4, 4)",
    "Gather::Run(M) with operand 2 of shape (5, 3)",
    "Interpolate::Run with operand 0 of shape (1, 2, 4, 4)",
    "Interpolate::Run with operand 0 of shape (1, 2, 5, 3)",
    "Interpolate::Run with operand 1 of shape (1, 2, 4, 4)",
    "Interpolate::Run with operand 1 of shape (1, 2, 5, 3)",
    "Interpolate::RunBackward with operand 0 of shape (1, 2, 4, 4)",
    "Interpolate::RunBackward with operand 0 of shape (1, 2, 5, 3)",
    "Interpolate::RunBackward with operand 1 of shape (1, 2, 4, 4)",
    "Interpolate::RunBackward with operand 1 of shape (1, 2, 5, 3)",
    "MaskedScatter::Run with operand 2 of shape (6, 2)",
    "MaskedScatter::Run with operand 2 of shape (7)",
    "MaskedSelect::Run with operand 0 of shape (7)",
    "Nonzero::Run with operand 0 of shape (7, 2)",
    "Nonzero::Run with operand 1 of shape (2, 4)",
    "Nonzero::Run with operand 1 of shape (3, 3)",
    "Reduce::Run with operand 1 of shape (2, 4)",
    "Reduce::RunIndices with operand 1 of shape (2, 4)",
    "Reduce::RunWithIndices with operand 2 of shape (2, 4)",
    "ScaledDotProductAttention::RunFlash with operand 5 of shape (5)",
    "ScaledDotProductAttention::RunFlashBwd with operand 7 of shape (5)",
    "ScaledDotProductAttention::RunMath with operand 5 of shape (5)",
    "Scatter::Run with operand 0 of shape (4, 4)",
    "Scatter::Run with operand 0 of shape (5, 3)",
    "Scatter::Run with operand 2 of shape (2, 4)",
    "Scatter::Run with operand 2 of shape (3, 3)",
    "Ternary::Run with operand 1 of shape (3)",
    "Ternary::Run with operand 2 of shape (3)",
    "Ternary::Run with operand 3 of shape (3)",
    "TopK::Run with operand 2 of shape (3, 3)",
};

void shapes_that_do_not_fit() {
  const Arena arena;
  Findings findings;
  for (const Form& form : forms::forms()) {
    if (is_query(form) || fails_later(form)) continue;
    const std::vector<Right> rights = read_operands(form);
    for (size_t i = 0; i < rights.size(); ++i) {
      if (rights[i].dims.empty()) continue;
      std::vector<std::vector<int64_t>> wrong;
      for (size_t d = 0; d < rights[i].dims.size(); ++d) {
        wrong.push_back(rights[i].dims);
        ++wrong.back()[d];
      }
      wrong.push_back(rights[i].dims);
      wrong.back().push_back(2);
      if (rights[i].dims.size() > 1) {
        wrong.emplace_back(rights[i].dims.begin() + 1, rights[i].dims.end());
      }
      for (const std::vector<int64_t>& dims : wrong) {
        const std::string text = where(form, i, "of shape " + shape(dims));
        const bool runs = call_with(form, arena, i, operand(arena.slot(i), dims, rights[i].type),
                                    text) == Status::SUCCESS;
        if (runs != (kFits.count(text) != 0)) {
          findings.add(text + (runs ? " runs" : " does not run"));
        }
        expect_right_use_works(form, arena, text);
      }
    }
  }
  findings.report();
}

// Every operand in every type: whatever the verdict, it is a Status and it is final.
void any_type() {
  const Arena arena;
  for (const Form& form : forms::forms()) {
    const std::vector<Right> rights = read_operands(form);
    for (size_t i = 0; i < rights.size(); ++i) {
      if (rights[i].dims.empty()) continue;
      for (const Type type : kTypes) {
        const std::string text =
            where(form, i, "of type " + std::to_string(static_cast<int>(type)));
        (void)call_with(form, arena, i, operand(arena.slot(i), rights[i].dims, type), text);
        expect_right_use_works(form, arena, text);
      }
    }
  }
}

// Shapes and types that may or may not fit: whatever the verdict, it is a Status.
void any_shapes_and_types() {
  const Arena arena;
  const std::vector<std::vector<int64_t>> shapes = {
      {1}, {3}, {2, 3}, {4, 4}, {1, 2, 3}, {2, 2, 4, 4}, {1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 2}};
  uint64_t state = 1;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % below);
  };
  size_t succeeded = 0;
  for (const Form& form : forms::forms()) {
    if (fails_later(form)) continue;
    for (int round = 0; round < 60; ++round) {
      arena.clear();
      Operands operands;
      // Mostly alike, so that deeper checks and kernels are reached too.
      const auto& common = shapes[draw(shapes.size())];
      const Type type = kTypes[draw(std::size(kTypes))];
      size_t place = 0;
      for (Tensor& t : operands) {
        const auto& dims = draw(3) == 0 ? shapes[draw(shapes.size())] : common;
        const Type own = draw(4) == 0 ? kTypes[draw(std::size(kTypes))] : type;
        t = operand(arena.slot(place++), dims, own);
        if (draw(4) == 0) (void)t.SetFormat(kFormats[draw(std::size(kFormats))]);
      }
      succeeded += call(form, operands, form.name) == Status::SUCCESS ? 1 : 0;
      expect_done(form.name);
    }
    expect_right_use_works(form, arena, form.name);
  }
  CHECK(succeeded > forms::forms().size());  // or the shapes above say nothing
}

}  // namespace

// Each in both modes: a refusal must not depend on when work runs.
TEST(absent_operands_are_refused) { absent_operands(); }
TEST(a_mode_that_is_not_set_is_refused) { modes_not_set(); }
TEST(an_operand_that_no_call_can_use_is_refused) { unusable_operands(); }
TEST(a_shape_that_does_not_fit_is_refused) { shapes_that_do_not_fit(); }
TEST(any_type_of_any_operand_gives_a_status) { any_type(); }
TEST(any_shapes_and_types_give_a_status) { any_shapes_and_types(); }
TEST_WITH_ENV(absent_operands_are_refused_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  absent_operands();
}
TEST_WITH_ENV(a_mode_that_is_not_set_is_refused_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  modes_not_set();
}
TEST_WITH_ENV(an_operand_that_no_call_can_use_is_refused_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  unusable_operands();
}
TEST_WITH_ENV(a_shape_that_does_not_fit_is_refused_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  shapes_that_do_not_fit();
}
TEST_WITH_ENV(any_type_of_any_operand_gives_its_status_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  any_type();
}
TEST_WITH_ENV(any_shapes_and_types_give_their_status_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  any_shapes_and_types();
}
