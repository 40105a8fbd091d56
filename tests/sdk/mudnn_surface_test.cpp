// The whole API surface of muDNN that op code uses, form by form (mudnn_forms.h has those of Run):
// this does not compile or link where one is missing, and every mode is accepted by its setter.
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

#include "mudnn_forms.h"

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

// A form that the table does not list would not be tested: one per line of the API's table.
TEST(the_list_of_forms_names_no_form_twice) {
  const std::vector<forms::Form> all = forms::forms();
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(forms::read_operands(all[i]).size() <= forms::kMostOperands);
    for (size_t j = 0; j < i; ++j) CHECK(all[i].name != all[j].name);
  }
}

TEST(every_form_runs_with_the_operands_that_it_takes) {
  const forms::Arena arena;
  for (const forms::Form& form : forms::forms()) {
    forms::Operands operands = forms::right_use(form, arena);
    CHECK_OK(forms::call(form, operands, form.name));
    CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  }
}
