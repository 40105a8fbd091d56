// The whole API surface of muDNN that op code uses, form by form: this does not compile or link
// where one is missing, and every mode is accepted by its setter. And what holds for all of them:
// wrong use is a Status, never an exception or a fault, and the next correct call works.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <concepts>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "device_tensor.h"

using namespace musa::dnn;
using check::DeviceTensor;

namespace {

using Type = Tensor::Type;
using Op = ScaledDotProductAttention;

// ---- descriptors -----------------------------------------------------------------------------

static_assert(std::is_default_constructible_v<Tensor>);
static_assert(std::is_constructible_v<Handle, int>);
static_assert(std::same_as<MemoryHandler, std::unique_ptr<void, std::function<void(void*)>>>);
static_assert(std::same_as<MemoryMaintainer, std::function<MemoryHandler(size_t)>>);
static_assert(MUDNN_VERSION >= 3100);
static_assert(Tensor::kMaxRank == 8);
static_assert(std::same_as<Convolution::ComputeMode, MatMul::ComputeMode> &&
              std::same_as<Convolution::ComputeMode, BatchMatMul::ComputeMode> &&
              std::same_as<Convolution::ComputeMode, Dot::ComputeMode> &&
              std::same_as<Convolution::ComputeMode, Op::ComputeMode>);

constexpr Type kTypes[] = {Type::HALF,  Type::FLOAT, Type::DOUBLE,   Type::BFLOAT16, Type::INT8,
                           Type::INT16, Type::INT32, Type::INT64,    Type::UINT8,    Type::UINT64,
                           Type::BOOL,  Type::QINT8, Type::FP8_E5M2, Type::FP8_E4M3};

constexpr Tensor::Format kFormats[] = {Tensor::Format::NCW,   Tensor::Format::NCHW,
                                       Tensor::Format::NHWC,  Tensor::Format::NCDHW,
                                       Tensor::Format::NDHWC, Tensor::Format::DHWCN};

constexpr Status kStatuses[] = {Status::SUCCESS,         Status::INVALID_PARAMETER,
                                Status::NOT_SUPPORTED,   Status::NOT_INITIALIZED,
                                Status::ALLOC_FAILED,    Status::INTERNAL_ERROR,
                                Status::EXECUTION_FAILED};

// ---- modes -----------------------------------------------------------------------------------

// clang-format off
#define UNARY(_)                                                                             \
  _(ABS) _(ACOS) _(ADD) _(ATAN) _(CAST) _(CEIL) _(CLIP) _(COS) _(ELU) _(EQ) _(ERF) _(EXP)    \
  _(FLOOR) _(FLOORDIV) _(FLOORDIV_BY_ALPHA) _(FLOORMOD) _(GE) _(GELU) _(GELU_TANH) _(GT)     \
  _(HARDSIGMOID) _(HARDSWISH) _(IDENTITY) _(IS_INF) _(IS_NAN) _(LE) _(LEAKY_RELU) _(LOG)     \
  _(LOG10) _(LOG1P) _(LOG2) _(LT) _(MISH) _(MUL) _(NE) _(POW) _(RECIPROCAL) _(RELU) _(RELU6) \
  _(ROUND) _(RSQRT) _(SIGMOID) _(SIGN) _(SILU) _(SIN) _(SOFTPLUS) _(SQRT) _(SUB)             \
  _(SUB_BY_ALPHA) _(TAN) _(TANH) _(TRUEDIV) _(TRUEDIV_BY_ALPHA) _(TRUNCATEDIV)               \
  _(TRUNCATEDIV_BY_ALPHA) _(TRUNCATEMOD)
#define BINARY(_)                                                                            \
  _(ADD) _(ADD_ALPHA) _(SUB) _(SUB_ALPHA) _(MUL) _(TRUEDIV) _(FLOORDIV) _(TRUNCATEDIV)       \
  _(FLOORMOD) _(TRUNCATEMOD) _(POW) _(MAX) _(MIN) _(EQ) _(NE) _(LT) _(LE) _(GT) _(GE)        \
  _(LOGICAL_AND) _(LOGICAL_OR) _(LOGICAL_XOR) _(SIGMOID_BW) _(SILU_BW) _(TANH_BW)            \
  _(THRESHOLD_BW) _(GELU_NONE_BW) _(GELU_TANH_BW) _(LEAKY_RELU_BW)
#define TERNARY(_) _(ADDCMUL) _(ADDCMUL_ALPHA) _(ADDCDIV) _(ADDCDIV_ALPHA) _(CLAMP) _(SELECT)
#define REDUCE(_) \
  _(ADD) _(MEAN) _(MAX) _(MIN) _(PROD) _(AND) _(OR) _(NORM) _(VARIANCE) _(STD) _(MUL)
#define CUM(_) _(ADD) _(MUL)
#define SOFTMAX(_) _(SOFTMAX) _(LOGSOFTMAX) _(LOGSUMEXP)
#define POOLING(_)                                                                           \
  _(MAXPOOL) _(AVGPOOL_COUNT_PAD) _(AVGPOOL_COUNT_WITHOUT_PAD) _(ADAPTIVE_AVGPOOL)           \
  _(ADAPTIVE_MAXPOOL)
#define INTERPOLATE(_) _(NEAREST) _(NEAREST_EXACT) _(LINEAR) _(BICUBIC)
#define PAD(_) _(CONSTANT) _(REFLECT) _(REPLICATE)
#define GATHER(_) _(GATHER) _(GATHER_ELEMENTS)
#define SCATTER(_) _(UPDATE_ONLY) _(ADD)
#define LOSS(_) _(NONE) _(MEAN) _(SUM)
#define ACTIVATION(_) _(IDENTITY) _(RELU) _(SILU)
// clang-format on

template <class Op, class Mode>
void accepts(Op op, const std::vector<Mode>& modes, Status (Op::*set)(Mode)) {
  for (Mode mode : modes) CHECK_OK((op.*set)(mode));
  CHECK_STATUS((op.*set)(static_cast<Mode>(1000)), INVALID_PARAMETER);
  CHECK_STATUS((op.*set)(static_cast<Mode>(-1)), INVALID_PARAMETER);
}

#define NAMED_MODE(mode) Mode::mode,

}  // namespace

#define TEST_MODES(test, cls, enumeration, setter, list)         \
  TEST(test) {                                                   \
    using Mode = cls::enumeration;                               \
    accepts<cls, Mode>(cls(), {list(NAMED_MODE)}, &cls::setter); \
  }

TEST_MODES(modes_of_unary, Unary, Mode, SetMode, UNARY)
TEST_MODES(modes_of_binary, Binary, Mode, SetMode, BINARY)
TEST_MODES(modes_of_ternary, Ternary, Mode, SetMode, TERNARY)
TEST_MODES(modes_of_reduce, Reduce, Mode, SetMode, REDUCE)
TEST_MODES(modes_of_cum, Cum, Mode, SetMode, CUM)
TEST_MODES(modes_of_softmax, Softmax, Mode, SetMode, SOFTMAX)
TEST_MODES(modes_of_pooling, Pooling, Mode, SetMode, POOLING)
TEST_MODES(modes_of_interpolate, Interpolate, Mode, SetMode, INTERPOLATE)
TEST_MODES(modes_of_pad, Pad, Mode, SetMode, PAD)
TEST_MODES(modes_of_gather, Gather, Mode, SetMode, GATHER)
TEST_MODES(modes_of_scatter, Scatter, Mode, SetMode, SCATTER)
TEST_MODES(modes_of_nll_loss, NLLLoss, Mode, SetReductionMode, LOSS)
TEST_MODES(modes_of_kl_div_loss, KLDivLoss, Mode, SetReductionMode, LOSS)
TEST_MODES(modes_of_cross_entropy, CrossEntropyLoss, ReductionMode, SetReductionMode, LOSS)
TEST_MODES(modes_of_fused_activation, Convolution::FusedActivationDesc, Mode, SetMode, ACTIVATION)

TEST(types_formats_and_statuses) {
  Tensor t;
  for (Type type : kTypes) CHECK_OK(t.SetType(type));
  for (Tensor::Format format : kFormats) CHECK_OK(t.SetFormat(format));
  for (size_t i = 0; i < std::size(kStatuses); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK(kStatuses[i] != kStatuses[j]);
  }
}

// ---- setters ---------------------------------------------------------------------------------

namespace {
const int kOne[] = {1};
const int kTwo[] = {1, 1};
}  // namespace

// Each with an ordinary value, through every overload.
TEST(setters) {
  Tensor t;
  const int64_t dims[] = {2, 3}, strides[] = {3, 1};
  CHECK_OK(t.SetAddr(nullptr));
  CHECK_OK(t.SetQuantizationInfo(0.5f));
  CHECK_OK(t.SetQuantizationInfo(0.5f, 1));
  CHECK_OK(t.SetNdInfo(2, dims));
  CHECK_OK(t.SetNdInfo(2, dims, strides));
  CHECK_OK(t.SetNdInfo({2, 3}));
  CHECK_OK(t.SetNdInfo({2, 3}, {3, 1}));
  std::vector<int64_t> read_dims, read_strides;
  CHECK_OK(t.GetNdInfo(read_dims));
  CHECK_OK(t.GetNdInfo(read_dims, read_strides));

  Handle h(0);
  CHECK_OK(h.SetStream(nullptr));
  CHECK(h.GetStream() == nullptr);
  CHECK_OK(h.SetAllowTF32(true));

  CHECK_OK(Unary().SetAlpha(1.0));
  CHECK_OK(Unary().SetAlpha(int64_t{1}));
  CHECK_OK(Unary().SetBeta(1.0));
  CHECK_OK(Unary().SetBeta(int64_t{1}));
  CHECK_OK(Binary().SetAlpha(1.0));
  CHECK_OK(Binary().SetAlpha(int64_t{1}));
  CHECK_OK(Ternary().SetAlpha(1.0));
  CHECK_OK(Ternary().SetAlpha(int64_t{1}));
  CHECK_OK(Reduce().SetDim(1, kOne));
  CHECK_OK(Reduce().SetDim({0, 1}));
  CHECK_OK(Reduce().SetNormOrd(2));
  CHECK_OK(Reduce().SetCorrection(1));
  CHECK_OK(Cum().SetDim(0));
  CHECK_OK(Softmax().SetDim(0));
  CHECK_OK(Softmax().SetAlgorithm(Softmax::Algorithm::ACCURATE));
  CHECK_OK(Fill().SetValue(1.0));
  CHECK_OK(Fill().SetValue(int64_t{1}));
  CHECK_OK(Concat().SetAxis(0));
  CHECK_OK(Glu().SetAxis(0));
  CHECK_OK(Pad().SetPaddingInfo(2, kTwo));
  CHECK_OK(Pad().SetPaddingInfo({1, 1}));
  CHECK_OK(Pad().SetValue(1.0));
  CHECK_OK(Pad().SetValue(int64_t{1}));
  CHECK_OK(Gather().SetAxis(0));
  CHECK_OK(Sort().SetDim(0));
  CHECK_OK(Sort().SetDescending(true));
  CHECK_OK(Sort().SetStable(true));
  CHECK_OK(SortByKey().SetDim(0));
  CHECK_OK(SortByKey().SetDescending(true));
  CHECK_OK(SortByKey().SetStable(true));
  CHECK_OK(TopK().SetK(1));
  CHECK_OK(TopK().SetDim(0));
  CHECK_OK(TopK().SetLargest(true));
  CHECK_OK(TopK().SetSorted(true));
}

TEST(setters_of_layers) {
  const uint64_t word = 0;
  const float half[] = {0.5f};
  CHECK_OK(MatMul().SetComputeMode(ComputeMode::TENSOR));
  CHECK_OK(MatMul().SetTranspose(true, false));
  CHECK_OK(MatMul().SetAlpha(1));
  CHECK_OK(MatMul().SetBeta(1));
  CHECK_OK(MatMul().SetGamma(1));
  CHECK_OK(BatchMatMul().SetComputeMode(ComputeMode::SCALAR));
  CHECK_OK(BatchMatMul().SetTranspose(true, false));
  CHECK_OK(BatchMatMul().SetAlpha(1));
  CHECK_OK(BatchMatMul().SetBeta(1));
  CHECK_OK(BatchMatMul().SetGamma(1));
  CHECK_OK(Dot().SetComputeMode(ComputeMode::TENSOR));
  Tensor t;
  CHECK_OK(MatMulLtParam().SetScale(t, t, t, t));
  CHECK_OK(MatMulLtParam().SetAmaxD(t));
  CHECK_OK(Convolution().SetNdInfo(1, kOne, kOne, kOne));
  CHECK_OK(Convolution().SetNdInfo({0, 0}, {1, 1}, {1, 1}));
  CHECK_OK(Convolution().SetGroups(1));
  CHECK_OK(Convolution().SetComputeMode(ComputeMode::TENSOR));
  CHECK_OK(Pooling().SetNdInfo(1, kOne, kOne, kOne, kOne));
  CHECK_OK(Pooling().SetNdInfo({2, 2}, {0, 0}, {1, 1}, {1, 1}));
  CHECK_OK(Pooling().SetDivisor(1));
  CHECK_OK(BatchNorm().SetMode(BatchNorm::Mode::PER_CHANNEL));
  CHECK_OK(BatchNorm().SetEpsilon(1e-5));
  CHECK_OK(BatchNorm().SetTraining(true));
  CHECK_OK(LayerNorm().SetAxis(1, kOne));
  CHECK_OK(LayerNorm().SetEpsilon(1e-5));
  CHECK_OK(LayerNorm().SetVarMode(LayerNorm::VarMode::WELFORD));
  CHECK_OK(LayerNorm().SetVarMode(LayerNorm::VarMode::DIRECT));
  CHECK_OK(RMSNorm().SetAxis(1, kOne));
  CHECK_OK(RMSNorm().SetEpsilon(1e-5));
  CHECK_OK(GroupNorm().SetAxis(1));
  CHECK_OK(GroupNorm().SetEpsilon(1e-5));
  CHECK_OK(GroupNorm().SetGroup(1));
  CHECK_OK(Op().SetComputeMode(ComputeMode::TENSOR));
  CHECK_OK(Op().SetEmbedDim(8));
  CHECK_OK(Op().SetHeadsNum(2));
  CHECK_OK(Op().SetBatchSize(2));
  CHECK_OK(Op().SetMaxSeqlenQ(2));
  CHECK_OK(Op().SetMaxSeqlenK(2));
  CHECK_OK(Op().SetMaskMode(true));
  CHECK_OK(Op().SetCausal(true));
  CHECK_OK(Op().SetDropoutP(0.5));
  CHECK_OK(Op().SetScale(0.5));
  CHECK_OK(Op().SetTraining(true));
  CHECK_OK(Interpolate().SetScaleInfo(1, half));
  CHECK_OK(Interpolate().SetScaleInfo({0.5f, 0.5f}));
  CHECK_OK(Interpolate().SetAlignCorners(true));
  CHECK_OK(Interpolate().SetAntialias(true));
  CHECK_OK(Dropout().SetP(0.5));
  CHECK_OK(Dropout().SetScale(2));
  CHECK_OK(Dropout().SetSeed(uint64_t{1}));
  CHECK_OK(Dropout().SetSeed(&word));
  CHECK_OK(Dropout().SetOffset(uint64_t{1}));
  CHECK_OK(Dropout().SetOffset(&word, 1));
  CHECK_OK(NLLLoss().SetIgnoreIndex(1));
  CHECK_OK(KLDivLoss().SetLogTarget(true));
  CHECK_OK(CrossEntropyLoss().SetIgnoreIndex(1));
  CHECK_OK(CrossEntropyLoss().SetLabelSmoothing(0.1));
  CHECK_OK(CTCLoss().SetBlank(1));
  CHECK_OK(CTCLoss().SetZeroInfinity(true));
  CHECK_OK(CTCLoss().SetMaxTargetLength(4));
  CHECK_OK(Rope().SetRotaryInterleaved(true));
  CHECK_OK(Rope().SetBatchFirst(true));
  CHECK_OK(Rope().SetMultiLatentAttention(true));
}

// ---- Run forms -------------------------------------------------------------------------------

namespace {

constexpr size_t kMostOperands = 16;
using Operands = std::array<Tensor, kMostOperands>;

// One way to run an op, fed from a list of operands.
struct Form {
  std::string name;
  size_t operands;
  std::function<Status(Handle&, Operands&)> run;
};

// What is not an operand has an ordinary value: algorithm 0, dimension 0, no scratch memory.
template <class Argument>
decltype(auto) feed(Operands& operands, size_t& next) {
  using Plain = std::remove_cvref_t<Argument>;
  if constexpr (std::same_as<Plain, Tensor>) {
    return static_cast<Argument>(operands[next++]);
  } else if constexpr (std::same_as<Plain, MemoryMaintainer>) {
    static const MemoryMaintainer none = check::no_memory;
    return static_cast<const MemoryMaintainer&>(none);
  } else if constexpr (std::is_lvalue_reference_v<Argument>) {
    static Plain value{};
    return static_cast<Argument>(value);
  } else {
    return Plain{};
  }
}

template <class Argument>
constexpr size_t kOperands = std::same_as<std::remove_cvref_t<Argument>, Tensor> ? 1 : 0;

template <class Op, class... Arguments>
Form form(const char* name, const Op& op, Status (Op::*run)(Handle&, Arguments...) const) {
  return {name, (0 + ... + kOperands<Arguments>), [op, run](Handle& h, Operands& operands) {
            size_t next = 0;
            // Braces: in this order.
            std::tuple<Arguments...> arguments{feed<Arguments>(operands, next)...};
            return std::apply(
                [&](auto&&... each) { return (op.*run)(h, static_cast<Arguments>(each)...); },
                arguments);
          }};
}

using M = const MemoryMaintainer&;
using C = const Tensor&;
using T = Tensor&;

template <class Op, class Mode>
Op with_mode(Mode mode) {
  Op op;
  (void)op.SetMode(mode);
  return op;
}

Convolution convolution() {
  Convolution op;
  (void)op.SetNdInfo({0, 0}, {1, 1}, {1, 1});
  return op;
}

Pooling pooling() {
  Pooling op;
  (void)op.SetNdInfo({1, 1}, {0, 0}, {1, 1}, {1, 1});
  return op;
}

Interpolate interpolate() {
  auto op = with_mode<Interpolate>(Interpolate::Mode::LINEAR);
  (void)op.SetScaleInfo({1.0f, 1.0f});
  return op;
}

template <class Norm>
Norm norm() {
  Norm op;
  const int axis = -1;
  (void)op.SetAxis(1, &axis);
  return op;
}

Op attention() {
  Op op;
  (void)op.SetEmbedDim(8);
  (void)op.SetHeadsNum(2);
  (void)op.SetBatchSize(2);
  (void)op.SetMaxSeqlenQ(4);
  (void)op.SetMaxSeqlenK(4);
  return op;
}

CTCLoss ctc() {
  CTCLoss op;
  (void)op.SetMaxTargetLength(2);
  return op;
}

Fill fill() {
  Fill op;
  (void)op.SetValue(1.0);
  return op;
}

Dropout dropout() {
  Dropout op;
  (void)op.SetP(0.5);
  return op;
}

#define OVERLOAD(cls, method, ...) \
  static_cast<Status (cls::*)(Handle&, __VA_ARGS__) const>(&cls::method)

// Every Run form of the API, set up so that operands are all that can be wrong.
std::vector<Form> forms() {
  const auto unary = with_mode<Unary>(Unary::Mode::EXP);
  const auto cast = with_mode<Unary>(Unary::Mode::CAST);
  const auto binary = with_mode<Binary>(Binary::Mode::ADD);
  const auto ternary = with_mode<Ternary>(Ternary::Mode::ADDCMUL);
  const auto reduce = with_mode<Reduce>(Reduce::Mode::MAX);
  const auto softmax = with_mode<Softmax>(Softmax::Mode::SOFTMAX);
  const auto gather = with_mode<Gather>(Gather::Mode::GATHER_ELEMENTS);
  return {
      form("Unary::Run", unary, &Unary::Run),
      form("Unary::Run(CAST)", cast, &Unary::Run),
      form("Binary::Run", binary, &Binary::Run),
      form("Ternary::Run", ternary, &Ternary::Run),
      form("Reduce::Run", reduce, &Reduce::Run),
      form("Reduce::RunIndices", reduce, &Reduce::RunIndices),
      form("Reduce::RunWithIndices", reduce, &Reduce::RunWithIndices),
      form("Cum::Run", with_mode<Cum>(Cum::Mode::ADD), &Cum::Run),
      form("Softmax::Run", softmax, &Softmax::Run),
      form("Softmax::RunBwd", softmax, &Softmax::RunBwd),
      form("MatMul::Run", MatMul(), &MatMul::Run),
      form("MatMul::RunWithBiasAdd", MatMul(), OVERLOAD(MatMul, RunWithBiasAdd, T, C, C, C, M)),
      form("MatMul::RunWithBiasAdd(c)", MatMul(),
           OVERLOAD(MatMul, RunWithBiasAdd, T, C, C, C, C, M)),
      form("MatMul::RunLt", MatMul(), &MatMul::RunLt),
      form("BatchMatMul::Run", BatchMatMul(), &BatchMatMul::Run),
      form("BatchMatMul::RunWithBiasAdd", BatchMatMul(),
           OVERLOAD(BatchMatMul, RunWithBiasAdd, T, C, C, C, M)),
      form("BatchMatMul::RunWithBiasAdd(c)", BatchMatMul(),
           OVERLOAD(BatchMatMul, RunWithBiasAdd, T, C, C, C, C, M)),
      form("BatchMatMul::RunLt", BatchMatMul(), &BatchMatMul::RunLt),
      form("Dot::Run", Dot(), &Dot::Run),
      form("Convolution::Run", convolution(), &Convolution::Run),
      form("Convolution::RunFusion", convolution(), &Convolution::RunFusion),
      form("Convolution::RunBwdData", convolution(), &Convolution::RunBwdData),
      form("Convolution::RunBwdFilter", convolution(), &Convolution::RunBwdFilter),
      form("Convolution::GetRecommendForwardAlgorithm", convolution(),
           &Convolution::GetRecommendForwardAlgorithm),
      form("Convolution::GetRecommendBackwardDataAlgorithm", convolution(),
           &Convolution::GetRecommendBackwardDataAlgorithm),
      form("Convolution::GetRecommendBackwardFilterAlgorithm", convolution(),
           &Convolution::GetRecommendBackwardFilterAlgorithm),
      form("Pooling::Run", pooling(), &Pooling::Run),
      form("Pooling::RunBwd", pooling(), &Pooling::RunBwd),
      form("BatchNorm::RunPure", BatchNorm(), &BatchNorm::RunPure),
      form("BatchNorm::RunComposite", BatchNorm(), &BatchNorm::RunComposite),
      form("BatchNorm::RunBwd", BatchNorm(), &BatchNorm::RunBwd),
      form("LayerNorm::Run", norm<LayerNorm>(), &LayerNorm::Run),
      form("LayerNorm::RunBwd", norm<LayerNorm>(), &LayerNorm::RunBwd),
      form("RMSNorm::Run", norm<RMSNorm>(), &RMSNorm::Run),
      form("RMSNorm::RunBwd", norm<RMSNorm>(), &RMSNorm::RunBwd),
      form("GroupNorm::Run", GroupNorm(), &GroupNorm::Run),
      form("ScaledDotProductAttention::RunMath", attention(), &Op::RunMath),
      form("ScaledDotProductAttention::RunMathBwd", attention(), &Op::RunMathBwd),
      form("ScaledDotProductAttention::RunFlash", attention(), &Op::RunFlash),
      form("ScaledDotProductAttention::RunFlashBwd", attention(), &Op::RunFlashBwd),
      form("ScaledDotProductAttention::RunFlashVarlen", attention(), &Op::RunFlashVarlen),
      form("ScaledDotProductAttention::RunFlashVarlenBwd", attention(), &Op::RunFlashVarlenBwd),
      form("Interpolate::Run", interpolate(), &Interpolate::Run),
      form("Interpolate::RunBackward", interpolate(), &Interpolate::RunBackward),
      form("Pad::Run", with_mode<Pad>(Pad::Mode::CONSTANT), &Pad::Run),
      form("Gather::Run", gather, OVERLOAD(Gather, Run, T, C, C)),
      form("Gather::Run(M)", gather, OVERLOAD(Gather, Run, T, C, C, M)),
      form("Scatter::Run", with_mode<Scatter>(Scatter::Mode::ADD), &Scatter::Run),
      form("Sort::Run", Sort(), &Sort::Run),
      form("SortByKey::Run", SortByKey(), &SortByKey::Run),
      form("TopK::Run", TopK(), &TopK::Run),
      form("Dropout::RunDropout", dropout(), &Dropout::RunDropout),
      form("Dropout::RunDropoutBwd", dropout(), &Dropout::RunDropoutBwd),
      form("Fill::Run", fill(), OVERLOAD(Fill, Run, T)),
      form("Fill::Run(mask)", fill(), OVERLOAD(Fill, Run, T, C)),
      {"Concat::Run", 3,
       [](Handle& h, Operands& o) { return Concat().Run(h, o[0], 2, o.data() + 1); }},
      form("Glu::Run", Glu(), &Glu::Run),
      form("Permute::Run", Permute(), &Permute::Run),
      form("Nonzero::Run", Nonzero(), &Nonzero::Run),
      form("MaskedSelect::Run", MaskedSelect(), &MaskedSelect::Run),
      form("MaskedScatter::Run", MaskedScatter(), &MaskedScatter::Run),
      form("NLLLoss::Run", NLLLoss(), &NLLLoss::Run),
      form("NLLLoss::RunBwd", NLLLoss(), &NLLLoss::RunBwd),
      form("KLDivLoss::Run", KLDivLoss(), &KLDivLoss::Run),
      form("KLDivLoss::RunBwd", KLDivLoss(), &KLDivLoss::RunBwd),
      form("CrossEntropyLoss::Run", CrossEntropyLoss(), &CrossEntropyLoss::Run),
      form("CrossEntropyLoss::RunBwd", CrossEntropyLoss(), &CrossEntropyLoss::RunBwd),
      form("CTCLoss::Run", ctc(), &CTCLoss::Run),
      form("CTCLoss::RunBwd", ctc(), &CTCLoss::RunBwd),
      form("Rope::Run", Rope(), &Rope::Run),
      form("Rope::RunBwd", Rope(), &Rope::RunBwd),
      form("SwiGlu::Run", SwiGlu(), &SwiGlu::Run),
      form("SwiGlu::RunBwd", SwiGlu(), &SwiGlu::RunBwd),
  };
}

bool is_query(const Form& form) { return form.name.find("GetRecommend") != std::string::npos; }

std::string where(const Form& form, size_t operand, const std::string& what) {
  return form.name + " with operand " + std::to_string(operand) + " " + what;
}

// Plenty of device memory that every descriptor may point to.
struct Arena {
  void* address() const { return memory.address(); }
  DeviceTensor memory{at::zeros({1 << 16}, at::kByte)};
};

Tensor operand(void* address, std::vector<int64_t> dims, Type type = Type::FLOAT,
               std::vector<int64_t> strides = {}) {
  Tensor t;
  (void)t.SetType(type);
  (void)t.SetAddr(address);
  (void)t.SetNdInfo(static_cast<int>(dims.size()), dims.data(),
                    strides.empty() ? nullptr : strides.data());
  return t;
}

// Calls and lets no exception out of the question.
Status call(const Form& form, Operands& operands, const std::string& what) {
  Handle h(0);
  try {
    const Status status = form.run(h, operands);
    for (Status known : kStatuses) {
      if (status == known) return status;
    }
    check::fail(__FILE__, __LINE__, what + ": unknown status");
  } catch (const check::Failed&) {
    throw;
  } catch (...) {
    check::fail(__FILE__, __LINE__, what + ": an exception left muDNN");
  }
}

void add_still_works() {
  Handle h(0);
  DeviceTensor one(at::ones({3})), out(at::zeros({3}));
  Binary add;
  CHECK_OK(add.SetMode(Binary::Mode::ADD));
  CHECK_OK(add.Run(h, out, one, one));
  CHECK(at::equal(out.read(), at::full({3}, 2.0)));
}

}  // namespace

// A form that this file does not list would not be tested: one per line of the API's table.
TEST(the_list_of_forms_names_no_form_twice) {
  const std::vector<Form> all = forms();
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].operands <= kMostOperands);
    for (size_t j = 0; j < i; ++j) CHECK(all[i].name != all[j].name);
  }
}

TEST(absent_operands_are_refused) {
  for (const Form& form : forms()) {
    Operands none;
    if (is_query(form)) continue;
    if (call(form, none, form.name) != Status::INVALID_PARAMETER) {
      check::fail(__FILE__, __LINE__, form.name + " runs without operands");
    }
  }
  add_still_works();
}

// Whatever the mode, an op that has one and was not given any does not run.
TEST(a_mode_that_is_not_set_is_refused) {
  Arena arena;
  const std::vector<Form> without_mode = {
      form("Unary", Unary(), &Unary::Run),
      form("Binary", Binary(), &Binary::Run),
      form("Ternary", Ternary(), &Ternary::Run),
      form("Reduce", Reduce(), &Reduce::Run),
      form("Reduce indices", Reduce(), &Reduce::RunIndices),
      form("Reduce with indices", Reduce(), &Reduce::RunWithIndices),
      form("Cum", Cum(), &Cum::Run),
      form("Softmax", Softmax(), &Softmax::Run),
      form("Softmax backward", Softmax(), &Softmax::RunBwd),
      form("Interpolate", Interpolate(), &Interpolate::Run),
      form("Interpolate backward", Interpolate(), &Interpolate::RunBackward),
      form("Pad", Pad(), &Pad::Run),
      form("Gather", Gather(), OVERLOAD(Gather, Run, T, C, C)),
      form("Scatter", Scatter(), &Scatter::Run),
      form("Fill without value", Fill(), OVERLOAD(Fill, Run, T)),
  };
  for (const Form& form : without_mode) {
    Operands operands;
    for (Tensor& t : operands) t = operand(arena.address(), {1, 2, 4, 4});
    if (call(form, operands, form.name) != Status::INVALID_PARAMETER) {
      check::fail(__FILE__, __LINE__, form.name + " runs without a mode");
    }
  }
}

// Every operand of every form in turn is something that no call can use.
TEST(an_operand_that_no_call_can_use_is_refused) {
  Arena arena;
  const at::Tensor host_memory = at::zeros({64});
  const std::vector<int64_t> nine(9, 1);
  const auto nowhere = reinterpret_cast<void*>(uintptr_t{0x1000});
  const std::vector<std::pair<std::string, Tensor>> hostile = {
      {"of rank 0", operand(arena.address(), {})},
      {"of rank 9", operand(arena.address(), nine)},
      {"without elements", operand(arena.address(), {0, 3})},
      {"of negative size", operand(arena.address(), {2, -1})},
      {"without an address", operand(nullptr, {2, 3})},
      {"in host memory", operand(host_memory.data_ptr(), {2, 3})},
      {"nowhere", operand(nowhere, {2, 3})},
      {"past its allocation", operand(arena.address(), {1 << 20})},
      {"of QINT8", operand(arena.address(), {2, 3}, Type::QINT8)},
      {"of a size that overflows", operand(arena.address(), {int64_t{1} << 40, int64_t{1} << 40})},
      {"of strides that overflow",
       operand(arena.address(), {2, 3}, Type::FLOAT, {int64_t{1} << 62, 1})},
  };
  for (const Form& form : forms()) {
    if (is_query(form)) continue;
    for (size_t i = 0; i < form.operands; ++i) {
      for (const auto& [what, bad] : hostile) {
        Operands operands;
        for (Tensor& t : operands) t = operand(arena.address(), {2, 3});
        operands[i] = bad;
        const std::string text = where(form, i, what);
        if (call(form, operands, text) == Status::SUCCESS) {
          check::fail(__FILE__, __LINE__, text + " runs");
        }
      }
    }
  }
  add_still_works();
}

// Shapes and types that may or may not fit: whatever the verdict, it is a Status, and memory
// outside the operands keeps its bytes.
TEST(any_shapes_and_types_give_a_status) {
  Arena arena;
  const std::vector<std::vector<int64_t>> shapes = {
      {1}, {3}, {2, 3}, {4, 4}, {1, 2, 3}, {2, 2, 4, 4}, {1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 2}};
  uint64_t state = 1;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % below);
  };
  size_t succeeded = 0;
  for (const Form& form : forms()) {
    for (int round = 0; round < 60; ++round) {
      Operands operands;
      // Mostly alike, so that deeper checks and kernels are reached too.
      const auto& common = shapes[draw(shapes.size())];
      const Type type = kTypes[draw(std::size(kTypes))];
      size_t place = 0;
      for (Tensor& t : operands) {
        const auto& dims = draw(3) == 0 ? shapes[draw(shapes.size())] : common;
        const Type own = draw(4) == 0 ? kTypes[draw(std::size(kTypes))] : type;
        t = operand(static_cast<char*>(arena.address()) + 2048 * place++, dims, own);
        if (draw(4) == 0) (void)t.SetFormat(kFormats[draw(std::size(kFormats))]);
      }
      succeeded += call(form, operands, form.name) == Status::SUCCESS ? 1 : 0;
    }
  }
  CHECK(succeeded > forms().size());  // or the shapes above say nothing
  add_still_works();
}
