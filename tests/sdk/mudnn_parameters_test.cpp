// Every parameter of every class with values that may make no sense, the operands being right: the
// answer is a Status, it is final (nothing that was accepted fails later), and the right use that
// follows works.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "mudnn_forms.h"
#include "musa_host.h"

using namespace forms;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<int> kInts = {0,  1,  2,  3,    4,       7,         100,
                                -1, -2, -3, -100, 1 << 30, INT32_MAX, INT32_MIN};
const std::vector<double> kDoubles = {0,      0.5,    1,         -1,         2,           1e300,
                                      -1e300, 1e-300, kInfinity, -kInfinity, std::nan("")};
const std::vector<bool> kBools = {false, true};

const Form& named(const std::deque<Form>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Form& form) { return form.name == name; });
  if (found == all.end()) check::fail(__FILE__, __LINE__, "no form " + name);
  return *found;
}

std::deque<Form> deque_of_forms() {
  const std::vector<Form> all = forms::forms();
  return {all.begin(), all.end()};
}

// The forms with one parameter varied. `set` takes the op and a value.
class Variants {
 public:
  template <class Op, class Run, class Values, class Set>
  void add(const std::string& base, const std::string& what, const Op& op, Run run,
           const Values& values, Set set) {
    const Form& right = named(right_, base);
    for (const auto value : values) {
      Op changed = op;
      (void)set(changed, value);
      Form variant = form("", right.operands.c_str(), changed, run);
      variant.name = base + " with " + what + " " + std::to_string(value);
      all_.emplace_back(variant, &right);
    }
  }

  // Another base, whose own right use may be none.
  template <class Op, class Run>
  void add_form(const std::string& name, const std::string& operands, const Op& op, Run run) {
    right_.push_back(form("", operands.c_str(), op, run));
    right_.back().name = name;
  }

  const std::vector<std::pair<Form, const Form*>>& all() const { return all_; }

 private:
  std::deque<Form> right_ = deque_of_forms();
  std::vector<std::pair<Form, const Form*>> all_;
};

// base form, class, expression of the op, its Run, values, setter of (op, v)
#define VARY(base, op, run, values, what, ...) \
  variants.add(base, what, op, run, values, [](auto& o, auto v) { return __VA_ARGS__; })

template <class Op, class Run>
void vary_dim(Variants& variants, const std::string& base, const Op& op, Run run) {
  VARY(base, op, run, kInts, "dim", o.SetDim(v));
}

template <class Norm, class Run>
void vary_norm(Variants& variants, const std::string& base, Run run) {
  VARY(base, norm<Norm>(), run, kDoubles, "epsilon", o.SetEpsilon(v));
  variants.add(base, "axis", norm<Norm>(), run, kInts,
               [](auto& o, int v) { return o.SetAxis(1, &v); });
  variants.add(base, "axes", norm<Norm>(), run, kInts, [](auto& o, int v) {
    const int axes[] = {v, 0};
    return o.SetAxis(2, axes);
  });
  variants.add(base, "so many axes", norm<Norm>(), run, std::vector<int>{0, -1, -100, INT32_MIN},
               [](auto& o, int v) {
                 const int axes[] = {0, 1};
                 return o.SetAxis(v, axes);
               });
}

void vary_unary(Variants& variants) {
  const std::vector<int64_t> wide = {INT64_MIN, INT64_MAX, int64_t{1} << 40, 70000, -70000,
                                     300,       -300};
  for (int mode = 0; mode <= static_cast<int>(Unary::Mode::TRUNCATEMOD); ++mode) {
    const auto op = with_mode<Unary>(static_cast<Unary::Mode>(mode));
    for (const std::string type : {"f", "h", "i", "c", "t"}) {
      // Integers are divided by the operand's zeros, which is nothing that a call could know.
      const bool by_operand = static_cast<Unary::Mode>(mode) == Unary::Mode::FLOORDIV_BY_ALPHA ||
                              static_cast<Unary::Mode>(mode) == Unary::Mode::TRUNCATEDIV_BY_ALPHA;
      if (by_operand && type != "f" && type != "h") continue;
      for (const std::string out : {type, std::string("b")}) {
        const std::string form =
            "Unary::Run of mode " + std::to_string(mode) + " from " + type + " to " + out;
        variants.add_form(form, out + "2,3 " + type + "2,3", op, &Unary::Run);
        VARY(form, op, &Unary::Run, kDoubles, "alpha", o.SetAlpha(v));
        VARY(form, op, &Unary::Run, kInts, "alpha", o.SetAlpha(int64_t{v}));
        VARY(form, op, &Unary::Run, wide, "wide alpha", o.SetAlpha(v));
        VARY(form, op, &Unary::Run, kDoubles, "beta", o.SetBeta(v));
        VARY(form, op, &Unary::Run, wide, "wide beta", o.SetBeta(v));
      }
    }
  }
}

void vary_math(Variants& variants) {
  vary_unary(variants);
  const auto binary = with_mode<Binary>(Binary::Mode::THRESHOLD_BW);
  VARY("Binary::Run", binary, &Binary::Run, kDoubles, "alpha", o.SetAlpha(v));
  const auto ternary = with_mode<Ternary>(Ternary::Mode::ADDCDIV_ALPHA);
  VARY("Ternary::Run", ternary, &Ternary::Run, kDoubles, "alpha", o.SetAlpha(v));
  for (const auto mode :
       {Reduce::Mode::ADD, Reduce::Mode::MAX, Reduce::Mode::NORM, Reduce::Mode::STD}) {
    auto reduce = with_mode<Reduce>(mode);
    (void)reduce.SetDim({1});
    VARY("Reduce::Run", reduce, &Reduce::Run, kInts, "dim", o.SetDim({v}));
    VARY("Reduce::Run", reduce, &Reduce::Run, kInts, "dims", o.SetDim({v, 1}));
    VARY("Reduce::Run", reduce, &Reduce::Run, kInts, "so many dims",
         o.SetDim(std::min(v, 0), nullptr));
    VARY("Reduce::Run", reduce, &Reduce::Run, kDoubles, "order", o.SetNormOrd(v));
    VARY("Reduce::Run", reduce, &Reduce::Run, kDoubles, "correction", o.SetCorrection(v));
    VARY("Reduce::RunIndices", reduce, &Reduce::RunIndices, kInts, "dim", o.SetDim({v}));
    VARY("Reduce::RunWithIndices", reduce, &Reduce::RunWithIndices, kInts, "dim", o.SetDim({v}));
  }
  vary_dim(variants, "Cum::Run", with_mode<Cum>(Cum::Mode::ADD), &Cum::Run);
  vary_dim(variants, "Softmax::Run", with_mode<Softmax>(Softmax::Mode::SOFTMAX), &Softmax::Run);
  vary_dim(variants, "Softmax::RunBwd", with_mode<Softmax>(Softmax::Mode::LOGSOFTMAX),
           &Softmax::RunBwd);
  vary_dim(variants, "Sort::Run", Sort(), &Sort::Run);
  vary_dim(variants, "SortByKey::Run", SortByKey(), &SortByKey::Run);
  vary_dim(variants, "TopK::Run", TopK(), &TopK::Run);
  VARY("TopK::Run", TopK(), &TopK::Run, kInts, "k", o.SetK(v));
  VARY("Glu::Run", Glu(), &Glu::Run, kInts, "axis", o.SetAxis(v));
  const auto gather = with_mode<Gather>(Gather::Mode::GATHER_ELEMENTS);
  VARY("Gather::Run", gather, FORMS_OVERLOAD(Gather, Run, T, C, C), kInts, "axis", o.SetAxis(v));
  VARY("Fill::Run", Fill(), FORMS_OVERLOAD(Fill, Run, T), kDoubles, "value", o.SetValue(v));
  for (const auto mode : {Pad::Mode::CONSTANT, Pad::Mode::REFLECT, Pad::Mode::REPLICATE}) {
    VARY("Pad::Run", with_mode<Pad>(mode), &Pad::Run, kInts, "padding", o.SetPaddingInfo({v, 2}));
    VARY("Pad::Run", with_mode<Pad>(mode), &Pad::Run, kInts, "padding of two",
         o.SetPaddingInfo({1, 1, v, 0}));
    VARY("Pad::Run", with_mode<Pad>(mode), &Pad::Run, kInts, "so much padding",
         o.SetPaddingInfo(v, nullptr));
  }
}

template <class Op, class Run>
void vary_product(Variants& variants, const std::string& base, const Op& op, Run run) {
  VARY(base, op, run, kDoubles, "alpha", o.SetAlpha(v));
  VARY(base, op, run, kDoubles, "beta", o.SetBeta(v));
  VARY(base, op, run, kDoubles, "gamma", o.SetGamma(v));
  VARY(base, op, run, kBools, "transposition", o.SetTranspose(v, true));
  VARY(base, op, run, kInts, "compute mode", o.SetComputeMode(static_cast<ComputeMode>(v)));
}

template <class Op, class Run>
void vary_convolution(Variants& variants, const std::string& base, const Op& op, Run run) {
  VARY(base, op, run, kInts, "pad", o.SetNdInfo({v, 0}, {1, 1}, {1, 1}));
  VARY(base, op, run, kInts, "stride", o.SetNdInfo({0, 0}, {1, v}, {1, 1}));
  VARY(base, op, run, kInts, "dilation", o.SetNdInfo({0, 0}, {1, 1}, {v, 1}));
  VARY(base, op, run, kInts, "so many dims", o.SetNdInfo(v, nullptr, nullptr, nullptr));
  VARY(base, op, run, kInts, "groups", o.SetGroups(v));
  VARY(base, op, run, kInts, "compute mode", o.SetComputeMode(static_cast<ComputeMode>(v)));
}

template <class Run>
void vary_pooling(Variants& variants, const std::string& base, Run run) {
  for (const auto mode :
       {Pooling::Mode::MAXPOOL, Pooling::Mode::AVGPOOL_COUNT_PAD,
        Pooling::Mode::AVGPOOL_COUNT_WITHOUT_PAD, Pooling::Mode::ADAPTIVE_AVGPOOL}) {
    auto op = pooling();
    (void)op.SetMode(mode);
    VARY(base, op, run, kInts, "kernel", o.SetNdInfo({2, v}, {0, 0}, {1, 1}, {1, 1}));
    VARY(base, op, run, kInts, "pad", o.SetNdInfo({2, 2}, {0, v}, {1, 1}, {1, 1}));
    VARY(base, op, run, kInts, "stride", o.SetNdInfo({2, 2}, {0, 0}, {v, 1}, {1, 1}));
    VARY(base, op, run, kInts, "dilation", o.SetNdInfo({2, 2}, {0, 0}, {1, 1}, {1, v}));
    VARY(base, op, run, kInts, "divisor", o.SetDivisor(v));
    // The sizes agree, and yet half of a window lies outside.
    VARY(base, op, run, kInts, "more pad than window",
         o.SetNdInfo({2 + 2 * (v & 7), 2}, {v & 7, 0}, {1, 1}, {1, 1}));
    VARY(base, op, run, kInts, "only pad", o.SetNdInfo({1, 1}, {v & 1, v & 2}, {1, 1}, {1, 1}));
  }
}

void vary_layers(Variants& variants) {
  vary_product(variants, "MatMul::Run", MatMul(), &MatMul::Run);
  vary_product(variants, "BatchMatMul::Run", BatchMatMul(), &BatchMatMul::Run);
  vary_convolution(variants, "Convolution::Run", convolution(), &Convolution::Run);
  vary_convolution(variants, "Convolution::RunBwdData", convolution(), &Convolution::RunBwdData);
  vary_convolution(variants, "Convolution::RunBwdFilter", convolution(),
                   &Convolution::RunBwdFilter);
  vary_pooling(variants, "Pooling::Run", &Pooling::Run);
  vary_pooling(variants, "Pooling::RunBwd", &Pooling::RunBwd);
  VARY("BatchNorm::RunPure", batch_norm(), &BatchNorm::RunPure, kDoubles, "epsilon",
       o.SetEpsilon(v));
  VARY("BatchNorm::RunComposite", batch_norm(), &BatchNorm::RunComposite, kDoubles, "epsilon",
       o.SetEpsilon(v));
  VARY("BatchNorm::RunBwd", batch_norm(), &BatchNorm::RunBwd, kDoubles, "epsilon", o.SetEpsilon(v));
  VARY("BatchNorm::RunBwd", batch_norm(), &BatchNorm::RunBwd, kBools, "training", o.SetTraining(v));
  vary_norm<LayerNorm>(variants, "LayerNorm::Run", &LayerNorm::Run);
  vary_norm<LayerNorm>(variants, "LayerNorm::RunBwd", &LayerNorm::RunBwd);
  vary_norm<RMSNorm>(variants, "RMSNorm::Run", &RMSNorm::Run);
  vary_norm<RMSNorm>(variants, "RMSNorm::RunBwd", &RMSNorm::RunBwd);
  VARY("GroupNorm::Run", group_norm(), &GroupNorm::Run, kInts, "groups", o.SetGroup(v));
  VARY("GroupNorm::Run", group_norm(), &GroupNorm::Run, kInts, "axis", o.SetAxis(v));
  VARY("GroupNorm::Run", group_norm(), &GroupNorm::Run, kDoubles, "epsilon", o.SetEpsilon(v));
  for (const auto mode : {Interpolate::Mode::NEAREST, Interpolate::Mode::NEAREST_EXACT,
                          Interpolate::Mode::LINEAR, Interpolate::Mode::BICUBIC}) {
    for (const bool smooth : {false, true}) {
      auto op = with_mode<Interpolate>(mode);
      (void)op.SetAntialias(smooth);
      const auto set = [](Interpolate& o, double v) {
        return o.SetScaleInfo({static_cast<float>(v), 1.0f});
      };
      variants.add("Interpolate::Run", "scale", op, &Interpolate::Run, kDoubles, set);
      variants.add("Interpolate::RunBackward", "scale", op, &Interpolate::RunBackward, kDoubles,
                   set);
      VARY("Interpolate::Run", op, &Interpolate::Run, kInts, "so many scales",
           o.SetScaleInfo(v, nullptr));
      VARY("Interpolate::Run", op, &Interpolate::Run, kBools, "aligned corners",
           o.SetAlignCorners(v));
    }
  }
  VARY("Dropout::RunDropout", dropout(), &Dropout::RunDropout, kDoubles, "p", o.SetP(v));
  VARY("Dropout::RunDropout", dropout(), &Dropout::RunDropout, kInts, "seed",
       o.SetSeed(static_cast<uint64_t>(v)));
  VARY("Dropout::RunDropoutBwd", dropout(), &Dropout::RunDropoutBwd, kDoubles, "scale",
       o.SetScale(v));
}

template <class Run>
void vary_attention(Variants& variants, const std::string& base, Run run) {
  VARY(base, attention(), run, kInts, "embed dim", o.SetEmbedDim(v));
  VARY(base, attention(), run, kInts, "heads", o.SetHeadsNum(v));
  VARY(base, attention(), run, kInts, "batch", o.SetBatchSize(v));
  VARY(base, attention(), run, kInts, "queries", o.SetMaxSeqlenQ(v));
  VARY(base, attention(), run, kInts, "keys", o.SetMaxSeqlenK(v));
  VARY(base, attention(), run, kDoubles, "dropout", (o.SetTraining(true), o.SetDropoutP(v)));
  VARY(base, attention(), run, kDoubles, "scale", o.SetScale(v));
  VARY(base, attention(), run, kBools, "causality", o.SetCausal(v));
  VARY(base, attention(), run, kBools, "padding mask", o.SetMaskMode(v));
}

template <class Loss, class Run>
void vary_loss(Variants& variants, const std::string& base, Run run) {
  using Mode = decltype(reduction_of(&Loss::SetReductionMode));
  VARY(base, loss<Loss>(), run, kInts, "reduction", o.SetReductionMode(static_cast<Mode>(v)));
  if constexpr (requires(Loss op) { op.SetIgnoreIndex(0); }) {
    VARY(base, loss<Loss>(), run, kInts, "ignored index", o.SetIgnoreIndex(v));
  }
}

void vary_losses_and_attention(Variants& variants) {
  vary_attention(variants, "ScaledDotProductAttention::RunMath", &Op::RunMath);
  vary_attention(variants, "ScaledDotProductAttention::RunMathBwd", &Op::RunMathBwd);
  vary_attention(variants, "ScaledDotProductAttention::RunFlash", &Op::RunFlash);
  vary_attention(variants, "ScaledDotProductAttention::RunFlashBwd", &Op::RunFlashBwd);
  // Whether lengths fit is known when their turn comes: only where that is at once.
  if (!musa::host::asynchronous()) {
    vary_attention(variants, "ScaledDotProductAttention::RunFlashVarlen", &Op::RunFlashVarlen);
    vary_attention(variants, "ScaledDotProductAttention::RunFlashVarlenBwd",
                   &Op::RunFlashVarlenBwd);
    VARY("CTCLoss::Run", ctc(), &CTCLoss::Run, kInts, "blank", o.SetBlank(v));
    VARY("CTCLoss::Run", ctc(), &CTCLoss::Run, kInts, "length", o.SetMaxTargetLength(v));
    VARY("CTCLoss::RunBwd", ctc(), &CTCLoss::RunBwd, kInts, "blank", o.SetBlank(v));
    VARY("CTCLoss::RunBwd", ctc(), &CTCLoss::RunBwd, kInts, "length", o.SetMaxTargetLength(v));
  }
  vary_loss<NLLLoss>(variants, "NLLLoss::Run", &NLLLoss::Run);
  vary_loss<NLLLoss>(variants, "NLLLoss::RunBwd", &NLLLoss::RunBwd);
  vary_loss<KLDivLoss>(variants, "KLDivLoss::Run", &KLDivLoss::Run);
  vary_loss<KLDivLoss>(variants, "KLDivLoss::RunBwd", &KLDivLoss::RunBwd);
  vary_loss<CrossEntropyLoss>(variants, "CrossEntropyLoss::Run", &CrossEntropyLoss::Run);
  vary_loss<CrossEntropyLoss>(variants, "CrossEntropyLoss::RunBwd", &CrossEntropyLoss::RunBwd);
  VARY("CrossEntropyLoss::Run", loss<CrossEntropyLoss>(), &CrossEntropyLoss::Run, kDoubles,
       "smoothing", o.SetLabelSmoothing(v));
}

// A handle that no call can use: of a device that is not there, of one whose memory the operands
// are not, with a stream that was destroyed.
void unusable_handles() {
  musaStream_t dead = nullptr;
  CHECK_EQ(musaStreamCreate(&dead), musaSuccess);
  CHECK_EQ(musaStreamDestroy(dead), musaSuccess);
  Handle of_dead_stream(0);
  CHECK(of_dead_stream.SetStream(dead) == Status::SUCCESS);
  std::vector<std::pair<std::string, Handle>> handles = {{"of device 99", Handle(99)},
                                                         {"of device -1", Handle(-1)},
                                                         {"of another device", Handle(1)},
                                                         {"of a dead stream", of_dead_stream}};
  const Arena arena;
  std::string findings;
  for (const Form& form : forms::forms()) {
    if (is_query(form)) continue;
    for (auto& [what, handle] : handles) {
      Operands operands = right_use(form, arena);
      if (form.run(handle, operands) == Status::SUCCESS)
        findings += "\n  " + form.name + " runs on a handle " + what;
      (void)musaGetLastError();
      CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
      operands = right_use(form, arena);
      if (call(form, operands, form.name) != Status::SUCCESS) {
        findings += "\n  the right use of " + form.name + " is refused after a handle " + what;
      }
    }
  }
  if (!findings.empty()) check::fail(__FILE__, __LINE__, findings);
}

void any_parameter() {
  Variants variants;
  vary_math(variants);
  vary_layers(variants);
  vary_losses_and_attention(variants);
  const Arena arena;
  size_t succeeded = 0;
  std::string findings;
  const std::vector<Form> plain = forms::forms();
  for (const auto& [variant, right] : variants.all()) {
    const Form& after = right->name.find(" of mode ") == std::string::npos ? *right : plain.front();
    Operands operands = right_use(variant, arena);
    const Status status = call(variant, operands, variant.name);
    succeeded += status == Status::SUCCESS ? 1 : 0;
    // Parameters are known at the call: what they make wrong is refused there, by a check.
    if (status == Status::EXECUTION_FAILED && !reads_lengths(variant))
      findings += "\n  found out by the work: " + variant.name;
    if (const musaError_t error = musaDeviceSynchronize(); error != musaSuccess) {
      check::fail(__FILE__, __LINE__, variant.name + ": accepted, then " + musaGetErrorName(error));
    }
    operands = right_use(after, arena);
    if (call(after, operands, variant.name) != Status::SUCCESS) {
      findings += "\n  the right use is refused after " + variant.name;
    }
  }
  if (!findings.empty()) check::fail(__FILE__, __LINE__, findings);
  CHECK(succeeded > variants.all().size() / 4);  // or the values above say nothing
}

}  // namespace

TEST(any_value_of_a_parameter_gives_a_status) { any_parameter(); }
TEST_WITH_ENV(any_value_of_a_parameter_gives_its_status_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  any_parameter();
}

TEST(a_handle_that_no_call_can_use_is_refused) { unusable_handles(); }
TEST_WITH_ENV(a_handle_that_no_call_can_use_is_refused_at_the_call, "MUSA_LAUNCH_BLOCKING=0") {
  unusable_handles();
}

TEST(operands_to_join_that_are_nowhere_are_refused) {
  const Arena arena;
  Handle h(0);
  Tensor out = operand(arena.slot(0), {4, 3});
  CHECK(Concat().Run(h, out, 2, nullptr) == Status::INVALID_PARAMETER);
  CHECK(Concat().Run(h, out, -1, nullptr) == Status::INVALID_PARAMETER);
}
