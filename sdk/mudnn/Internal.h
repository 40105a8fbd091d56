// How the stand-in runs a muDNN call. Every Run has the same form:
//
//   Status Permute::Run(Handle& h, Tensor& out, const Tensor& in) const {
//     return Call(h, Class::PERMUTE, "Permute::Run")
//         .out("out", out)
//         .in("in", in)
//         .run([&](Call& c) -> Work {
//           require(same_shape(out, in), "out and in must have one shape");   // checks: at once
//           return [o = c.alias(out), i = c.alias(in)] { o.copy_(i); };       // work: on the
//           stream
//         });
//   }
//
// Before the checks, run() refuses absent operands, applies the limits table (limits.def) and
// verifies that the operand memory is the device's. Exceptions of checks and work become a Status.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <limits>
#include <optional>
#include <string>

#include "DirectCalls.h"
#include "Work.h"
#include "mudnn_base.h"

namespace musa::dnn {

namespace detail {
// The implementation's door into Tensor.
struct TensorAccess {
  static void* address(const Tensor& t) { return t.address_; }
  static at::IntArrayRef dims(const Tensor& t) { return {t.dims_, static_cast<size_t>(t.rank_)}; }
  static at::IntArrayRef strides(const Tensor& t) {
    return {t.strides_, static_cast<size_t>(t.rank_)};
  }
  static Tensor::Type type(const Tensor& t) { return t.type_; }
  static Tensor::Format format(const Tensor& t) { return t.format_; }
  static bool absent(const Tensor& t) { return t.address_ == nullptr && !t.shaped_; }
};
}  // namespace detail

namespace internal {

using Type = Tensor::Type;

// Classes as the limits table names them.
enum class Class : uint8_t {
  ANY,
  UNARY,
  BINARY,
  TERNARY,
  REDUCE,
  CUM,
  SOFTMAX,
  FILL,
  CONCAT,
  PERMUTE,
  NONZERO,
  MASKED_SELECT,
  MASKED_SCATTER,
  GATHER,
  SCATTER,
  SORT,
  SORT_BY_KEY,
  TOP_K,
  PAD,
  GLU,
  INTERPOLATE,
  MATMUL,
  BATCH_MATMUL,
  DOT,
  CONVOLUTION,
  POOLING,
  BATCH_NORM,
  LAYER_NORM,
  RMS_NORM,
  GROUP_NORM,
  SDPA,
  DROPOUT,
  NLL_LOSS,
  KL_DIV_LOSS,
  CROSS_ENTROPY_LOSS,
  CTC_LOSS,
  ROPE,
  SWIGLU,
};
constexpr size_t kClasses = static_cast<size_t>(Class::SWIGLU) + 1;

// ---- reading a Tensor ------------------------------------------------------------------------

inline bool absent(const Tensor& t) { return detail::TensorAccess::absent(t); }
inline void* address(const Tensor& t) { return detail::TensorAccess::address(t); }
inline at::IntArrayRef dims(const Tensor& t) { return detail::TensorAccess::dims(t); }
inline at::IntArrayRef strides(const Tensor& t) { return detail::TensorAccess::strides(t); }
inline Type type(const Tensor& t) { return detail::TensorAccess::type(t); }
inline Tensor::Format format(const Tensor& t) { return detail::TensorAccess::format(t); }
inline int64_t rank(const Tensor& t) { return static_cast<int64_t>(dims(t).size()); }

// Descriptors hold any numbers: what overflows counts as more than any memory has.
inline int64_t numel(const Tensor& t) {
  int64_t n = rank(t) == 0 ? 0 : 1;
  bool overflows = false;
  for (int64_t d : dims(t)) {
    if (d == 0) return 0;
    overflows = __builtin_mul_overflow(n, d, &n) || overflows;
  }
  return overflows ? std::numeric_limits<int64_t>::max() : n;
}

// Strides of dimensions of size 1 do not matter.
inline bool contiguous(const Tensor& t) {
  int64_t expected = 1;
  for (int64_t d = rank(t) - 1; d >= 0; --d) {
    if (dims(t)[d] != 1 && strides(t)[d] != expected) return false;
    if (__builtin_mul_overflow(expected, dims(t)[d], &expected)) return false;
  }
  return true;
}

// Compute capability of the process' profile as one number: 3.1 is 31.
int architecture();

bool is_floating(Type type);  // HALF, BFLOAT16, FLOAT, DOUBLE
bool is_integral(Type type);  // INT8 .. UINT64, without BOOL
// The types that ATen's kernels take everywhere: UINT64 and the 8-bit floats they mostly copy only.
inline bool has_kernels(Type type) {
  return is_floating(type) || type == Type::BOOL || (is_integral(type) && type != Type::UINT64);
}
inline bool is_low_precision(Type type) { return type == Type::HALF || type == Type::BFLOAT16; }
const char* name(Type type);
at::ScalarType scalar_type(Type type);  // refuses QINT8 with NOT_SUPPORTED

// ---- refusing --------------------------------------------------------------------------------

// Thrown by checks, caught by Call::run.
struct Refusal {
  Status status;
  std::string reason;
};

[[noreturn]] void refuse(Status status, std::string reason);

inline void require(bool condition, const char* reason, Status status = Status::INVALID_PARAMETER) {
  if (!condition) refuse(status, reason);
}

// A mode that has no default: refused where the caller set none.
template <typename Mode>
Mode mode_of(const std::optional<Mode>& mode) {
  require(mode.has_value(), "no mode set");
  return *mode;
}

// `dim` counted from the front; refuses one out of range.
int64_t wrap_dim(int64_t dim, int64_t rank);

// How the limits table and the log spell a mode, from the enumeration's names in order.
template <typename Mode, size_t n>
const char* name_of(const std::optional<Mode>& mode, const char* const (&names)[n]) {
  return mode ? names[static_cast<size_t>(*mode)] : nullptr;
}

// Not ArrayRef::equals: for so few numbers memcmp's call is most of the work.
inline bool same_shape(const Tensor& a, const Tensor& b) {
  if (rank(a) != rank(b)) return false;
  for (int64_t d = 0; d < rank(a); ++d) {
    if (dims(a)[d] != dims(b)[d]) return false;
  }
  return true;
}

// ---- calls -----------------------------------------------------------------------------------

// Wrong results that the library is known for (limits.def).
enum class Effect : uint8_t {
  NONE,
  WRITES_ZEROS,          // every output is zeroed
  WRITES_FIRST_ELEMENT,  // of the output, and leaves the others as they were
};

// What the limits table asks about a call beside its operands.
enum class Fact : uint8_t { REDUCED_DIMS, GROUPS };
constexpr size_t kFacts = 2;

struct Operand {
  const char* name;
  const Tensor* tensor;
  bool output;
  bool optional;
};

class Call {
 public:
  // `mode` is the spelling of the mode enumerator, for the limits table and the log; null where the
  // class has none.
  Call(Handle& handle, Class cls, const char* entry, const char* mode = nullptr)
      : handle_(handle), cls_(cls), entry_(entry), mode_(mode) {}

  Call& out(const char* name, const Tensor& t) { return add(name, t, true, false); }
  Call& in(const char* name, const Tensor& t) { return add(name, t, false, false); }
  Call& optional_out(const char* name, const Tensor& t) { return add(name, t, true, true); }
  Call& optional_in(const char* name, const Tensor& t) { return add(name, t, false, true); }

  Call& with(Fact fact, size_t value) {
    facts_[static_cast<size_t>(fact)] = static_cast<int64_t>(value);
    return *this;
  }

  // `prepare` checks the operands on the calling thread and returns the work; an empty Work means
  // there is nothing to do.
  Status run(c10::function_ref<Work(Call&)> prepare) {
    return run_impl(prepare, nullptr, /*synchronize=*/false);
  }
  // `shortcut` is asked first. For operands so small that ATen's ways cost more than the work it
  // computes by itself, through map(), sum() or product(), and returns true; it may do so only for
  // what prepare would not refuse.
  Status run(c10::function_ref<Work(Call&)> prepare, c10::function_ref<bool(Call&)> shortcut) {
    return run_impl(prepare, &shortcut, /*synchronize=*/false);
  }
  // Runs `body` in stream order before returning; false, and nothing done, where the stream does
  // not run work in the caller's thread.
  template <class Body>
  bool now(Body&& body) const {
    return now([](void* b) { (*static_cast<std::remove_reference_t<Body>*>(b))(); }, &body);
  }
  // Computed in stream order; false, and nothing done, where the target does not do so by itself.
  bool map(const DirectMap& map) const;
  bool sum(const DirectSum& sum) const;
  bool product(const DirectProduct& product) const;
  // The same for calls that the caller reads a result of at once (Nonzero): waits for the stream.
  Status run_and_wait(c10::function_ref<Work(Call&)> prepare) {
    return run_impl(prepare, nullptr, /*synchronize=*/true);
  }

  // An ATen tensor over the operand's memory, with the operand's sizes, strides and type. It owns
  // nothing: it must not outlive the call's work.
  at::Tensor alias(const Tensor& t) const { return alias(t, dims(t), strides(t)); }
  at::Tensor alias(const Tensor& t, at::IntArrayRef dims, at::IntArrayRef strides) const;
  // Broadcast to `dims`; refuses with INVALID_PARAMETER where it does not fit.
  at::Tensor alias_expanded(const Tensor& t, at::IntArrayRef dims) const;
  at::Device device() const;  // where ATen computes
  // Refuses memory that a kernel on the handle's device may not touch. run() has asked this about
  // every operand; it is for memory that is named by another parameter.
  void require_accessible(const char* name, const Tensor& t) const;
  Handle& handle() const { return handle_; }
  Class cls() const { return cls_; }
  const char* entry() const { return entry_; }
  const char* mode() const { return mode_ == nullptr ? "" : mode_; }
  c10::ArrayRef<Operand> operands() const { return operands_; }
  // -1 where the class did not say.
  int64_t fact(Fact fact) const { return facts_[static_cast<size_t>(fact)]; }
  // What the limits table says the library does instead of computing, where it does not refuse.
  Effect effect() const { return effect_; }

 private:
  Call& add(const char* name, const Tensor& t, bool output, bool optional) {
    // Written where it stays: a copy would read the two flags as one word while their stores are
    // still on the way, and wait for them longer than all the rest takes.
    operands_.resize_for_overwrite(operands_.size() + 1);
    Operand& operand = operands_.back();
    operand.name = name;
    operand.tensor = &t;
    operand.output = output;
    operand.optional = optional;
    return *this;
  }
  Status run_impl(c10::function_ref<Work(Call&)> prepare,
                  const c10::function_ref<bool(Call&)>* shortcut, bool synchronize);
  Work zeroing() const;
  void start(Work& work, bool recorded) const;
  bool now(void (*body)(void*), void* argument) const;
  void check_operands();
  void check_memory() const;

  Handle& handle_;
  Class cls_;
  const char* entry_;
  const char* mode_;
  Effect effect_ = Effect::NONE;
  std::array<int64_t, kFacts> facts_{-1, -1};
  c10::SmallVector<Operand, 8> operands_;
};

// Bytes spanned by the operand, from its address on.
size_t extent_bytes(const Tensor& t);

// Whether the two share no memory.
inline bool are_apart(const at::Tensor& a, const at::Tensor& b) {
  const auto* a_begin = static_cast<const char*>(a.const_data_ptr());
  const auto* b_begin = static_cast<const char*>(b.const_data_ptr());
  return a_begin + a.storage().nbytes() <= b_begin || b_begin + b.storage().nbytes() <= a_begin;
}

// For work that reads `in` after it has begun to write `out`: `in`, or a copy of it where the two
// share memory.
at::Tensor apart(const at::Tensor& in, const at::Tensor& out);

// A parameter as the operand's type reads it; refuses the double overload for an integral operand.
at::Scalar number(const detail::Number& n, Type type);
// A parameter that the operand's type need not hold but is computed with beside it: what no float
// holds is infinity, unless the operands are DOUBLE.
double number(double value, Type type);

}  // namespace internal
}  // namespace musa::dnn
