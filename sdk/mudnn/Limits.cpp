#include "Limits.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "musa_runtime_api.h"

namespace musa::dnn::internal {
namespace {

// Compute capability as one number: 3.1 is 31.
constexpr int kAll = 1 << 30;

// Whether this device's library was built for double precision.
bool has_fp64() {
  static const bool value = [] {
    const char* text = std::getenv("TORCH_MUSA_HOST_FP64");
    if (text == nullptr || *text == '\0') return architecture() >= 22;
    return std::strcmp(text, "0") != 0;
  }();
  return value;
}

// ---- predicates of limits.def ----------------------------------------------------------------

bool has_rank_0(const Tensor& t) { return rank(t) == 0; }
bool has_no_elements(const Tensor& t) {
  for (const int64_t size : dims(t)) {
    if (size == 0) return true;
  }
  return rank(t) == 0;
}
bool is_not_contiguous(const Tensor& t) { return !contiguous(t); }

template <Type T>
bool has_type(const Tensor& t) {
  return type(t) == T;
}

template <typename Predicate>
bool any_operand(const Call& c, Predicate predicate) {
  for (const Operand& operand : c.operands()) {
    if (!absent(*operand.tensor) && predicate(*operand.tensor)) return true;
  }
  return false;
}

template <typename Predicate>
bool any_input(const Call& c, Predicate predicate) {
  for (const Operand& operand : c.operands()) {
    if (!operand.output && !absent(*operand.tensor) && predicate(*operand.tensor)) return true;
  }
  return false;
}

const Tensor* find(const Call& c, const char* name) {
  for (const Operand& operand : c.operands()) {
    if (std::strcmp(operand.name, name) == 0) return operand.tensor;
  }
  return nullptr;
}

bool operand(const Call& c, const char* name, Type t) {
  // The type first: few operands have it.
  for (const Operand& operand : c.operands()) {
    if (type(*operand.tensor) == t && std::strcmp(operand.name, name) == 0) return true;
  }
  return false;
}

bool mode_in(const Call& c, std::initializer_list<const char*> modes) {
  for (const char* mode : modes) {
    if (std::strcmp(c.mode(), mode) == 0) return true;
  }
  return false;
}

// Several elements that are all the same memory: every dimension that counts has stride 0.
bool one_element_broadcast(const Call& c, const char* name) {
  const Tensor* tensor = find(c, name);
  if (tensor == nullptr || numel(*tensor) < 2) return false;
  for (int64_t d = 0; d < rank(*tensor); ++d) {
    if (dims(*tensor)[d] > 1 && strides(*tensor)[d] != 0) return false;
  }
  return true;
}

struct Matrix {
  int64_t rows, columns, row_stride, column_stride;
};

Matrix last_two_dims(const Tensor& t) {
  const int64_t n = rank(t);
  return {dims(t)[n - 2], dims(t)[n - 1], strides(t)[n - 2], strides(t)[n - 1]};
}

// The library takes the leading dimension from the strides, also where a size of 1 makes the
// stride meaningless.
bool has_short_leading_dimension(const Tensor& t) {
  if (rank(t) < 2) return false;
  const Matrix m = last_two_dims(t);
  if (m.column_stride == 1) return m.row_stride < m.columns;
  if (m.row_stride == 1) return m.column_stride < m.rows;
  return false;
}

bool is_no_plain_transpose(const Tensor& t) {
  if (rank(t) < 2 || contiguous(t)) return rank(t) < 2 && !contiguous(t);
  const Matrix m = last_two_dims(t);
  if (m.row_stride != 1 || m.column_stride != m.rows) return true;
  int64_t expected = m.rows * m.columns;
  for (int64_t d = rank(t) - 3; d >= 0; --d) {
    if (dims(t)[d] != 1 && strides(t)[d] != expected) return true;
    expected *= dims(t)[d];
  }
  return false;
}

bool given(const Call& c, const char* name) {
  const Tensor* tensor = find(c, name);
  return tensor != nullptr && !absent(*tensor);
}

int64_t width(const Tensor& t) { return rank(t) == 0 ? 0 : dims(t)[rank(t) - 1]; }

bool is_flash_width(const Call& c) {
  const int64_t of_keys = width(*find(c, "q")), of_values = width(*find(c, "v"));
  return (of_keys <= 128 && of_values <= 128) || (of_keys == 192 && of_values == 128) ||
         (of_keys == 160 && of_values == 160);
}

bool is_image_of_other_rank(const Tensor& t) { return rank(t) > 1 && rank(t) != 4; }

// ---- rows ------------------------------------------------------------------------------------

struct Row {
  const char* name;
  Class cls;
  int below;  // binds architectures under this one
  bool (*condition)(const Call&);
  Outcome outcome;
};

constexpr Outcome outcome(Status status) { return {status, Effect::NONE}; }
constexpr Outcome outcome(Effect effect) { return {Status::SUCCESS, effect}; }
constexpr Outcome with_source(Outcome o, const char* row, const char* source) {
  o.row = row;
  o.source = source;
  return o;
}

#define MUDNN_DEFAULT(row, cls, architectures, what, source)
#define MURAND_LIMIT(row, what, outcome, source)
#define ALL kAll
#define BELOW(major, minor) ((major) * 10 + (minor))
#define MUDNN_LIMIT(row, cls, architectures, condition, result, source)              \
  {#row, Class::cls, architectures, [](const Call& c) -> bool { return condition; }, \
   with_source(outcome(result), #row, source)},
constexpr Row kRows[] = {
#include "limits.def"
};
#undef MUDNN_LIMIT
#undef MURAND_LIMIT
#undef MUDNN_DEFAULT
#undef BELOW
#undef ALL

template <Class cls, size_t i>
bool applies(const Call& call) {
  constexpr const Row& row = kRows[i];
  if constexpr (row.cls == Class::ANY || row.cls == cls) {
    if (row.below != kAll && architecture() >= row.below) return false;
    return row.condition(call);
  }
  return false;
}

// Which rows bind a class is known to the compiler, so it puts their conditions in one function for
// each: every call of the library asks them, and to call one after the other costs more than they
// do.
template <Class cls, size_t... i>
Outcome first_that_applies(const Call& call, std::index_sequence<i...>) {
  Outcome outcome;
  static_cast<void>(((applies<cls, i>(call) && (outcome = kRows[i].outcome, true)) || ...));
  return outcome;
}

template <size_t... cls>
constexpr auto limits_by_class(std::index_sequence<cls...>) {
  using Limits = Outcome (*)(const Call&);
  return std::array<Limits, sizeof...(cls)>{[](const Call& call) {
    return first_that_applies<static_cast<Class>(cls)>(
        call, std::make_index_sequence<std::size(kRows)>());
  }...};
}

constexpr auto kLimits = limits_by_class(std::make_index_sequence<kClasses>());

}  // namespace

// The profile is the process', so one query serves every handle.
int architecture() {
  static const int value = [] {
    musaDeviceProp prop;
    if (musaGetDeviceProperties(&prop, 0) != musaSuccess) return kAll;
    return prop.major * 10 + prop.minor;
  }();
  return value;
}

Outcome apply_limits(const Call& call) { return kLimits[static_cast<size_t>(call.cls())](call); }

}  // namespace musa::dnn::internal
