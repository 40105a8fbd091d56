// Every Run form of muDNN's API, each with operands that it takes: what tests about all of them go
// through. The table is one line per form.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "device_tensor.h"

namespace forms {

using namespace musa::dnn;
using Op = ScaledDotProductAttention;

constexpr size_t kMostOperands = 16;
using Operands = std::array<Tensor, kMostOperands>;

// One way to run an op, fed from a list of operands.
struct Form {
  std::string name;
  std::string operands;  // of a right use: read_operands()
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

template <class Op, class... Arguments>
Form form(const char* name, const char* operands, const Op& op,
          Status (Op::*run)(Handle&, Arguments...) const) {
  return {name, operands, [op, run](Handle& h, Operands& operands) {
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

inline Convolution convolution() {
  Convolution op;
  (void)op.SetNdInfo({0, 0}, {1, 1}, {1, 1});
  return op;
}

inline Pooling pooling() {
  auto op = with_mode<Pooling>(Pooling::Mode::MAXPOOL);
  (void)op.SetNdInfo({2, 2}, {0, 0}, {1, 1}, {1, 1});
  return op;
}

inline Interpolate interpolate() {
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

inline BatchNorm batch_norm() {
  auto op = with_mode<BatchNorm>(BatchNorm::Mode::PER_CHANNEL);
  (void)op.SetTraining(true);
  return op;
}

inline GroupNorm group_norm() {
  GroupNorm op;
  (void)op.SetGroup(2);
  return op;
}

inline Pad pad() {
  auto op = with_mode<Pad>(Pad::Mode::CONSTANT);
  (void)op.SetPaddingInfo({1, 1});
  return op;
}

inline Op attention() {
  Op op;
  (void)op.SetEmbedDim(8);
  (void)op.SetHeadsNum(2);
  (void)op.SetBatchSize(2);
  (void)op.SetMaxSeqlenQ(4);
  (void)op.SetMaxSeqlenK(4);
  return op;
}

template <class Mode, class Loss>
Mode reduction_of(Status (Loss::*)(Mode));

template <class Loss>
Loss loss() {
  Loss op;
  (void)op.SetReductionMode(decltype(reduction_of(&Loss::SetReductionMode))::MEAN);
  return op;
}

inline CTCLoss ctc() {
  CTCLoss op;
  (void)op.SetMaxTargetLength(2);
  return op;
}

inline Fill fill() {
  Fill op;
  (void)op.SetValue(1.0);
  return op;
}

inline Dropout dropout() {
  Dropout op;
  (void)op.SetP(0.5);
  return op;
}

#define FORMS_OVERLOAD(cls, method, ...) \
  static_cast<Status (cls::*)(Handle&, __VA_ARGS__) const>(&cls::method)

// Every Run form of the API, set up so that operands are all that can be wrong.
inline std::vector<Form> forms() {
  const auto unary = with_mode<Unary>(Unary::Mode::EXP);
  const auto cast = with_mode<Unary>(Unary::Mode::CAST);
  const auto binary = with_mode<Binary>(Binary::Mode::ADD);
  const auto ternary = with_mode<Ternary>(Ternary::Mode::ADDCMUL);
  auto reduce = with_mode<Reduce>(Reduce::Mode::MAX);
  (void)reduce.SetDim({1});
  const auto softmax = with_mode<Softmax>(Softmax::Mode::SOFTMAX);
  const auto gather = with_mode<Gather>(Gather::Mode::GATHER_ELEMENTS);
  return {
      form("Unary::Run", "f2,3 f2,3", unary, &Unary::Run),
      form("Unary::Run(CAST)", "i2,3 f2,3", cast, &Unary::Run),
      form("Binary::Run", "f2,3 f2,3 f2,3", binary, &Binary::Run),
      form("Ternary::Run", "f2,3 f2,3 f2,3 f2,3", ternary, &Ternary::Run),
      form("Reduce::Run", "f2 f2,3", reduce, &Reduce::Run),
      form("Reduce::RunIndices", "i2 f2,3", reduce, &Reduce::RunIndices),
      form("Reduce::RunWithIndices", "f2 i2 f2,3", reduce, &Reduce::RunWithIndices),
      form("Cum::Run", "f2,3 f2,3", with_mode<Cum>(Cum::Mode::ADD), &Cum::Run),
      form("Softmax::Run", "f2,3 f2,3", softmax, &Softmax::Run),
      form("Softmax::RunBwd", "f2,3 f2,3 f2,3", softmax, &Softmax::RunBwd),
      form("MatMul::Run", "f2,4 f2,3 f3,4", MatMul(), &MatMul::Run),
      form("MatMul::RunWithBiasAdd", "f2,4 f2,3 f3,4 ?f4", MatMul(),
           FORMS_OVERLOAD(MatMul, RunWithBiasAdd, T, C, C, C, M)),
      form("MatMul::RunWithBiasAdd(c)", "f2,4 f2,3 f3,4 ?f2,4 ?f4", MatMul(),
           FORMS_OVERLOAD(MatMul, RunWithBiasAdd, T, C, C, C, C, M)),
      form("MatMul::RunLt", "f2,4 f2,3 f3,4 ?f2,4 ?f4", MatMul(), &MatMul::RunLt),
      form("BatchMatMul::Run", "f5,2,4 f5,2,3 f5,3,4", BatchMatMul(), &BatchMatMul::Run),
      form("BatchMatMul::RunWithBiasAdd", "f5,2,4 f5,2,3 f5,3,4 ?f4", BatchMatMul(),
           FORMS_OVERLOAD(BatchMatMul, RunWithBiasAdd, T, C, C, C, M)),
      form("BatchMatMul::RunWithBiasAdd(c)", "f5,2,4 f5,2,3 f5,3,4 ?f5,2,4 ?f4", BatchMatMul(),
           FORMS_OVERLOAD(BatchMatMul, RunWithBiasAdd, T, C, C, C, C, M)),
      form("BatchMatMul::RunLt", "f5,2,4 f5,2,3 f5,3,4 ?f5,2,4 ?f4", BatchMatMul(),
           &BatchMatMul::RunLt),
      form("Dot::Run", "f1 f3 f3", Dot(), &Dot::Run),
      form("Convolution::Run", "f1,3,3,2 f1,2,5,4 f3,2,3,3", convolution(), &Convolution::Run),
      form("Convolution::RunFusion", "f1,3,3,2 f1,2,5,4 f3,2,3,3 ?f3 ?f1,3,3,2", convolution(),
           &Convolution::RunFusion),
      form("Convolution::RunBwdData", "f1,2,5,4 f1,3,3,2 f3,2,3,3", convolution(),
           &Convolution::RunBwdData),
      form("Convolution::RunBwdFilter", "f3,2,3,3 f1,2,5,4 f1,3,3,2", convolution(),
           &Convolution::RunBwdFilter),
      form("Convolution::GetRecommendForwardAlgorithm", "f1,3,3,2 f1,2,5,4 f3,2,3,3", convolution(),
           &Convolution::GetRecommendForwardAlgorithm),
      form("Convolution::GetRecommendBackwardDataAlgorithm", "f1,2,5,4 f1,3,3,2 f3,2,3,3",
           convolution(), &Convolution::GetRecommendBackwardDataAlgorithm),
      form("Convolution::GetRecommendBackwardFilterAlgorithm", "f3,2,3,3 f1,2,5,4 f1,3,3,2",
           convolution(), &Convolution::GetRecommendBackwardFilterAlgorithm),
      form("Pooling::Run", "f1,2,3,2 f1,2,4,3 i1,2,3,2", pooling(), &Pooling::Run),
      form("Pooling::RunBwd", "f1,2,4,3 f1,2,3,2 i1,2,3,2", pooling(), &Pooling::RunBwd),
      form("BatchNorm::RunPure", "f2,3,4 f2,3,4 f3 f3 ?f3 ?f3", batch_norm(), &BatchNorm::RunPure),
      form("BatchNorm::RunComposite", "f2,3,4 f2,3,4 &f3 &f3 f3 f3 ?f3 ?f3", batch_norm(),
           &BatchNorm::RunComposite),
      form("BatchNorm::RunBwd", "f2,3,4 ?f3 ?f3 ?f3 ?f3 f2,3,4 f2,3,4 f3 f3 ?f3", batch_norm(),
           &BatchNorm::RunBwd),
      form("LayerNorm::Run", "f2,3 f2 f2 f2,3 &f3 &f3", norm<LayerNorm>(), &LayerNorm::Run),
      form("LayerNorm::RunBwd", "f2,3 ?f3 ?f3 f2,3 f2,3 f2 f2 ?f3", norm<LayerNorm>(),
           &LayerNorm::RunBwd),
      form("RMSNorm::Run", "f2,3 f2 f2,3 ?f3", norm<RMSNorm>(), &RMSNorm::Run),
      form("RMSNorm::RunBwd", "f2,3 ?f3 f2,3 f2,3 f2 ?f3", norm<RMSNorm>(), &RMSNorm::RunBwd),
      form("GroupNorm::Run", "f2,4,3 f2,2 f2,2 f2,4,3 ?f4 ?f4", group_norm(), &GroupNorm::Run),
      form("ScaledDotProductAttention::RunMath",
           "f2,2,3,4 f2,2,3,5 f2,2,3,4 f2,2,5,4 f2,2,5,4 ?f3,5 -", attention(), &Op::RunMath),
      form("ScaledDotProductAttention::RunMathBwd",
           "f2,2,3,4 f2,2,5,4 f2,2,5,4 f2,2,3,5 f2,2,3,4 f2,2,3,4 f2,2,5,4 f2,2,5,4 f2,2,3,5 "
           "-",
           attention(), &Op::RunMathBwd),
      form("ScaledDotProductAttention::RunFlash",
           "h2,2,3,4 f2,2,3 h2,2,3,4 h2,2,5,4 h2,2,5,4 ?h3,5 -", attention(), &Op::RunFlash),
      form("ScaledDotProductAttention::RunFlashBwd",
           "h2,2,3,4 h2,2,5,4 h2,2,5,4 h2,2,3,4 h2,2,3,4 h2,2,5,4 h2,2,5,4 ?h3,5 h2,2,3,4 f2,2,3 "
           "-",
           attention(), &Op::RunFlashBwd),
      form("ScaledDotProductAttention::RunFlashVarlen",
           "h6,2,4 f2,2,4 h6,2,4 h6,2,4 h6,2,4 - - c3 c3", attention(), &Op::RunFlashVarlen),
      form("ScaledDotProductAttention::RunFlashVarlenBwd",
           "h6,2,4 h6,2,4 h6,2,4 h6,2,4 h6,2,4 h6,2,4 h6,2,4 - h6,2,4 f2,2,4 - c3 c3", attention(),
           &Op::RunFlashVarlenBwd),
      form("Interpolate::Run", "f1,2,4,3 f1,2,4,3", interpolate(), &Interpolate::Run),
      form("Interpolate::RunBackward", "f1,2,4,3 f1,2,4,3", interpolate(),
           &Interpolate::RunBackward),
      form("Pad::Run", "f2,5 f2,3", pad(), &Pad::Run),
      form("Gather::Run", "f2,3 i2,3 f4,3", gather, FORMS_OVERLOAD(Gather, Run, T, C, C)),
      form("Gather::Run(M)", "f2,3 i2,3 f4,3", gather, FORMS_OVERLOAD(Gather, Run, T, C, C, M)),
      form("Scatter::Run", "f4,3 i2,3 f2,3", with_mode<Scatter>(Scatter::Mode::ADD), &Scatter::Run),
      form("Sort::Run", "f2,3 i2,3 f2,3", Sort(), &Sort::Run),
      form("SortByKey::Run", "f2,3 i2,3 f2,3 i2,3", SortByKey(), &SortByKey::Run),
      form("TopK::Run", "f1,3 i1,3 f2,3", TopK(), &TopK::Run),
      form("Dropout::RunDropout", "f2,3 f2,3 b2,3", dropout(), &Dropout::RunDropout),
      form("Dropout::RunDropoutBwd", "f2,3 f2,3 b2,3", dropout(), &Dropout::RunDropoutBwd),
      form("Fill::Run", "f2,3", fill(), FORMS_OVERLOAD(Fill, Run, T)),
      form("Fill::Run(mask)", "f2,3 b2,3", fill(), FORMS_OVERLOAD(Fill, Run, T, C)),
      {"Concat::Run", "f4,3 f2,3 f2,3",
       [](Handle& h, Operands& o) { return Concat().Run(h, o[0], 2, o.data() + 1); }},
      form("Glu::Run", "f1,3 f2,3", Glu(), &Glu::Run),
      form("Permute::Run", "f2,3 f2,3", Permute(), &Permute::Run),
      form("Nonzero::Run", "i6,2 f2,3", Nonzero(), &Nonzero::Run),
      form("MaskedSelect::Run", "f6 f2,3 b2,3", MaskedSelect(), &MaskedSelect::Run),
      form("MaskedScatter::Run", "f2,3 b2,3 f6", MaskedScatter(), &MaskedScatter::Run),
      form("NLLLoss::Run", "f1 f1 f2,3 i2 ?f3", loss<NLLLoss>(), &NLLLoss::Run),
      form("NLLLoss::RunBwd", "f2,3 f1 i2 ?f3 f1", loss<NLLLoss>(), &NLLLoss::RunBwd),
      form("KLDivLoss::Run", "f1 f2,3 f2,3", loss<KLDivLoss>(), &KLDivLoss::Run),
      form("KLDivLoss::RunBwd", "f2,3 f1 f2,3 f2,3", loss<KLDivLoss>(), &KLDivLoss::RunBwd),
      form("CrossEntropyLoss::Run", "f1 f2,3 i2 ?f3", loss<CrossEntropyLoss>(),
           &CrossEntropyLoss::Run),
      form("CrossEntropyLoss::RunBwd", "f2,3 f2,3 f1 i2 ?f3", loss<CrossEntropyLoss>(),
           &CrossEntropyLoss::RunBwd),
      form("CTCLoss::Run", "f2 f2,5,5 f5,2,3 i2,2 i2 i2", ctc(), &CTCLoss::Run),
      form("CTCLoss::RunBwd", "f5,2,3 f2 f5,2,3 i2,2 i2 i2 f2 f2,5,5", ctc(), &CTCLoss::RunBwd),
      form("Rope::Run", "f3,2,2,4 f3,2,2,4 f3,4", Rope(), &Rope::Run),
      form("Rope::RunBwd", "f3,2,2,4 f3,2,2,4 f3,4", Rope(), &Rope::RunBwd),
      form("SwiGlu::Run", "f2,3 f2,6", SwiGlu(), &SwiGlu::Run),
      form("SwiGlu::RunBwd", "f2,6 f2,6 f2,3", SwiGlu(), &SwiGlu::RunBwd),
  };
}

// ---- operands --------------------------------------------------------------------------------

// Plenty of device memory that every descriptor may point to, all zeros at first.
class Arena {
 public:
  static constexpr size_t kSlot = 4096;  // bytes of one operand

  void* slot(size_t number) const { return static_cast<char*>(memory_.address()) + kSlot * number; }
  void clear() const {
    CHECK_EQ(musaMemset(memory_.address(), 0, kSlot * kMostOperands), musaSuccess);
  }

 private:
  check::DeviceTensor memory_{at::zeros({static_cast<int64_t>(kSlot * kMostOperands)}, at::kByte)};
};

inline Tensor operand(void* address, const std::vector<int64_t>& dims,
                      Tensor::Type type = Tensor::Type::FLOAT,
                      const std::vector<int64_t>& strides = {}) {
  Tensor t;
  (void)t.SetType(type);
  (void)t.SetAddr(address);
  (void)t.SetNdInfo(static_cast<int>(dims.size()), dims.data(),
                    strides.empty() ? nullptr : strides.data());
  return t;
}

// One operand of a right use: "f2,3" is FLOAT of shape (2, 3), "?f2" may be absent, "-" is, "&f2"
// may be absent together with the other one so marked. "c3" is the beginnings of two samples of
// three rows each.
struct Right {
  std::vector<int64_t> dims;
  Tensor::Type type = Tensor::Type::FLOAT;
  bool optional = false;
  bool paired = false;
  bool beginnings = false;
};

inline Tensor::Type type_of(char letter) {
  using Type = Tensor::Type;
  switch (letter) {
    case 'h':
      return Type::HALF;
    case 'i':
      return Type::INT64;
    case 'c':
      return Type::INT32;
    case 't':
      return Type::INT8;
    case 'b':
      return Type::BOOL;
    default:
      return Type::FLOAT;
  }
}

inline std::vector<Right> read_operands(const Form& form) {
  std::vector<Right> operands;
  std::istringstream words(form.operands);
  for (std::string word; words >> word;) {
    Right right;
    if (word == "-") {
      right.optional = true;
    } else {
      right.paired = word[0] == '&';
      right.optional = word[0] == '?' || right.paired;
      std::istringstream dims(word.substr(right.optional ? 2 : 1));
      right.type = type_of(word[right.optional ? 1 : 0]);
      right.beginnings = word[0] == 'c';
      for (std::string dim; std::getline(dims, dim, ',');) right.dims.push_back(std::stoll(dim));
    }
    operands.push_back(right);
  }
  return operands;
}

inline Tensor descriptor(const Arena& arena, size_t number, const Right& right) {
  return right.dims.empty() ? Tensor() : operand(arena.slot(number), right.dims, right.type);
}

// Also puts into the arena what the operands hold.
inline Operands right_use(const Form& form, const Arena& arena) {
  Operands operands;
  arena.clear();
  size_t number = 0;
  for (const Right& right : read_operands(form)) {
    operands[number] = descriptor(arena, number, right);
    const int beginnings[] = {0, 3, 6};
    if (right.beginnings) {
      CHECK_EQ(
          musaMemcpy(arena.slot(number), beginnings, sizeof(beginnings), musaMemcpyHostToDevice),
          musaSuccess);
    }
    ++number;
  }
  return operands;
}

// Whether what the operands hold decides if the call is right: lengths, beginnings of samples.
inline bool reads_lengths(const Form& form) {
  return form.name.find("Varlen") != std::string::npos ||
         form.name.find("CTCLoss") != std::string::npos;
}

// The queries of an algorithm read shapes alone.
inline bool is_query(const Form& form) {
  return form.name.find("GetRecommend") != std::string::npos;
}

// Calls and lets no exception out of the question.
inline Status call(const Form& form, Operands& operands, const std::string& what) {
  Handle h(0);
  try {
    const Status status = form.run(h, operands);
    if (status >= Status::SUCCESS && status <= Status::EXECUTION_FAILED) return status;
    check::fail(__FILE__, __LINE__, what + ": unknown status");
  } catch (const check::Failed&) {
    throw;
  } catch (...) {
    check::fail(__FILE__, __LINE__, what + ": an exception left muDNN");
  }
}

}  // namespace forms
