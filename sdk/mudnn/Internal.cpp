#include "Internal.h"

#include <ATen/core/ATen_fwd.h>
#include <ATen/record_function.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "Limits.h"
#include "Log.h"
#include "Target.h"

namespace musa::dnn::internal {
namespace {

// A library call knows nothing of the caller's autograd, autocast, functorch transforms or Python
// modes: nothing but the backend's own kernels may run, and nothing is recorded by a profiler.
class LibraryScope {
 public:
  explicit LibraryScope(bool recorded) {
    if (recorded) no_record_.emplace(/*is_enabled=*/false);
  }

 private:
  c10::impl::ForceDispatchKeyGuard keys_{
      c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset};
  // Switching recording off costs half a microsecond, so only where somebody records.
  std::optional<at::RecordFunctionGuard> no_record_;
};

Status status_of_current_exception(std::string& reason) {
  try {
    throw;
  } catch (const Refusal& refusal) {
    reason = refusal.reason;
    return refusal.status;
  } catch (const c10::NotImplementedError& error) {
    reason = error.what_without_backtrace();
    return Status::NOT_SUPPORTED;
  } catch (const c10::OutOfMemoryError& error) {
    reason = error.what_without_backtrace();
    return Status::ALLOC_FAILED;
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
    // AT_DISPATCH_* and the TensorIterator kernels of some versions say so in words only.
    return reason.find("not implemented for") != std::string::npos ? Status::NOT_SUPPORTED
                                                                   : Status::EXECUTION_FAILED;
  } catch (const std::bad_alloc&) {
    reason = "out of host memory";
    return Status::ALLOC_FAILED;
  } catch (const std::invalid_argument& error) {
    reason = error.what();
    return Status::INVALID_PARAMETER;
  } catch (const std::exception& error) {
    reason = error.what();
    return Status::EXECUTION_FAILED;
  } catch (...) {
    reason = "unknown exception";
    return Status::INTERNAL_ERROR;
  }
}

}  // namespace

// ---- reading a Tensor ------------------------------------------------------------------------

bool is_floating(Type type) {
  return type == Type::HALF || type == Type::BFLOAT16 || type == Type::FLOAT ||
         type == Type::DOUBLE;
}

bool is_integral(Type type) {
  switch (type) {
    case Type::INT8:
    case Type::INT16:
    case Type::INT32:
    case Type::INT64:
    case Type::UINT8:
    case Type::UINT64:
      return true;
    default:
      return false;
  }
}

const char* name(Type type) {
  static constexpr const char* kNames[] = {"HALF",  "FLOAT", "DOUBLE",   "BFLOAT16", "INT8",
                                           "INT16", "INT32", "INT64",    "UINT8",    "UINT64",
                                           "BOOL",  "QINT8", "FP8_E5M2", "FP8_E4M3"};
  return kNames[static_cast<int>(type)];
}

at::ScalarType scalar_type(Type type) {
  switch (type) {
    case Type::HALF:
      return at::kHalf;
    case Type::FLOAT:
      return at::kFloat;
    case Type::DOUBLE:
      return at::kDouble;
    case Type::BFLOAT16:
      return at::kBFloat16;
    case Type::INT8:
      return at::kChar;
    case Type::INT16:
      return at::kShort;
    case Type::INT32:
      return at::kInt;
    case Type::INT64:
      return at::kLong;
    case Type::UINT8:
      return at::kByte;
    case Type::UINT64:
      return at::kUInt64;
    case Type::BOOL:
      return at::kBool;
    case Type::FP8_E5M2:
      return at::kFloat8_e5m2;
    case Type::FP8_E4M3:
      return at::kFloat8_e4m3fn;
    case Type::QINT8:
      break;
  }
  refuse(Status::NOT_SUPPORTED, std::string("no computation on ") + name(type));
}

namespace {

// Bytes of an element, in the order of Type; 0 for what nothing computes on.
constexpr uint8_t kElementBytes[] = {2, 4, 8, 2, 1, 2, 4, 8, 1, 8, 1, 0, 1, 1};
static_assert(std::size(kElementBytes) == static_cast<size_t>(Type::FP8_E4M3) + 1);

}  // namespace

size_t extent_bytes(const Tensor& t) {
  if (rank(t) == 0) return 0;
  int64_t elements = 1;
  bool overflows = false;
  for (int64_t d = 0; d < rank(t); ++d) {
    if (dims(t)[d] == 0) return 0;
    int64_t reach = 0;
    overflows = __builtin_mul_overflow(dims(t)[d] - 1, strides(t)[d], &reach) || overflows;
    overflows = __builtin_add_overflow(elements, reach, &elements) || overflows;
  }
  const int64_t size = kElementBytes[static_cast<size_t>(type(t))];
  if (size == 0) (void)scalar_type(type(t));  // refuses
  int64_t bytes = 0;
  overflows = __builtin_mul_overflow(elements, size, &bytes) || overflows;
  return overflows ? std::numeric_limits<size_t>::max() : static_cast<size_t>(bytes);
}

// ---- refusing --------------------------------------------------------------------------------

void refuse(Status status, std::string reason) { throw Refusal{status, std::move(reason)}; }

int64_t wrap_dim(int64_t dim, int64_t rank) {
  require(dim >= -rank && dim < rank, "dimension out of range");
  return dim < 0 ? dim + rank : dim;
}

namespace {

// By the rule that reads a parameter into its type: a negative one of an unsigned type wraps (-1 is
// what NEG multiplies by).
bool fits(int64_t value, Type type) {
  switch (type) {
    case Type::INT8:
      return !c10::overflows<int8_t>(value);
    case Type::INT16:
      return !c10::overflows<int16_t>(value);
    case Type::INT32:
      return !c10::overflows<int32_t>(value);
    case Type::UINT8:
      return !c10::overflows<uint8_t>(value);
    case Type::UINT64:
      return !c10::overflows<uint64_t>(value);
    default:
      return true;
  }
}

}  // namespace

double number(double value, Type type) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (type == Type::DOUBLE || std::fabs(value) <= kLargest || std::isnan(value)) return value;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

at::Scalar number(const detail::Number& n, Type type) {
  if (is_floating(type)) return number(n.as_double, type);
  require(n.integral, "an integral operand takes its parameter from the int64 overload");
  require(fits(n.as_int, type), "the operand's type does not hold its parameter");
  return n.as_int;
}

// ---- aliases ---------------------------------------------------------------------------------

at::Device Call::device() const { return target::device(handle_.GetDevice()); }

at::Tensor Call::alias(const Tensor& t, at::IntArrayRef dims, at::IntArrayRef strides) const {
  const at::Device where = device();
  const at::ScalarType dtype = scalar_type(type(t));
  c10::Storage storage(c10::Storage::use_byte_size_t(), extent_bytes(t),
                       at::DataPtr(address(t), where), /*allocator=*/nullptr,
                       /*resizable=*/false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::computeDispatchKey(dtype, at::kStrided, where)),
      c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(dims, strides);
  return tensor;
}

at::Tensor Call::alias_expanded(const Tensor& t, at::IntArrayRef target) const {
  const auto missing = static_cast<int64_t>(target.size()) - rank(t);
  require(missing >= 0, "operand has more dimensions than the output");
  std::array<int64_t, Tensor::kMaxRank> expanded{};
  for (int64_t d = 0; d < rank(t); ++d) {
    if (dims(t)[d] == target[d + missing]) {
      expanded[d + missing] = strides(t)[d];
    } else {
      require(dims(t)[d] == 1, "operand does not broadcast to the output's shape");
    }
  }
  return alias(t, target, {expanded.data(), target.size()});
}

at::Tensor apart(const at::Tensor& in, const at::Tensor& out) {
  return are_apart(in, out) ? in : in.clone();
}

// ---- running ---------------------------------------------------------------------------------

void Call::check_operands() {
  for (const Operand& operand : operands_) {
    if (!operand.optional && absent(*operand.tensor)) {
      refuse(Status::INVALID_PARAMETER, std::string("operand '") + operand.name + "' is absent");
    }
  }
  const Outcome outcome = apply_limits(*this);
  if (outcome.status != Status::SUCCESS) {
    refuse(outcome.status, std::string("limit ") + outcome.row + ": " + outcome.source);
  }
  effect_ = outcome.effect;
}

// On the device a wrong address is a fault, not a wrong result.
void Call::check_memory() const {
  for (const Operand& operand : operands_) {
    const Tensor& t = *operand.tensor;
    if (absent(t)) continue;
    if (address(t) == nullptr) {
      refuse(Status::INVALID_PARAMETER,
             std::string("operand '") + operand.name + "' has no address");
    }
    if (operand.output) {
      for (int64_t d = 0; d < rank(t); ++d) {
        if (dims(t)[d] > 1 && strides(t)[d] == 0) {
          refuse(Status::INVALID_PARAMETER,
                 std::string("output '") + operand.name + "' overlaps itself");
        }
      }
    }
    require_accessible(operand.name, t);
  }
}

void Call::require_accessible(const char* name, const Tensor& t) const {
  if (target::accessible(address(t), extent_bytes(t), handle_.GetDevice())) return;
  refuse(Status::EXECUTION_FAILED, std::string("illegal address: operand '") + name +
                                       "' is not (entirely) memory that the device can reach");
}

bool Call::now(void (*body)(void*), void* argument) const {
  return target::run(handle_.GetDevice(), handle_.GetStream(), body, argument, entry_);
}

bool Call::map(const DirectMap& map) const {
  return target::map(handle_.GetDevice(), handle_.GetStream(), map, entry_);
}

bool Call::sum(const DirectSum& sum) const {
  return target::sum(handle_.GetDevice(), handle_.GetStream(), sum, entry_);
}

bool Call::product(const DirectProduct& product) const {
  return target::product(handle_.GetDevice(), handle_.GetStream(), product);
}

// On the stream: at once where that is how work runs, otherwise when its turn comes.
void Call::start(Work& work, bool recorded) const {
  auto run = [&work, recorded] {
    LibraryScope scope(recorded);
    work();
  };
  if (now(run)) return;
  target::enqueue(
      handle_.GetDevice(), handle_.GetStream(),
      [work = std::make_shared<Work>(std::move(work)), recorded] {
        LibraryScope scope(recorded);
        try {
          (*work)();
        } catch (...) {
          // No caller is left to take the Status: the runtime prints what the log would have said.
          std::string reason;
          const Status status = status_of_current_exception(reason);
          throw std::runtime_error(std::string(name(status)) + ", " + reason);
        }
      },
      entry_);
}

Work Call::zeroing() const {
  c10::SmallVector<at::Tensor, 2> outputs;
  for (const Operand& operand : operands_) {
    if (operand.output && !absent(*operand.tensor)) outputs.push_back(alias(*operand.tensor));
  }
  return [outputs = std::move(outputs)]() mutable {
    for (at::Tensor& output : outputs) output.zero_();
  };
}

Status Call::run_impl(c10::function_ref<Work(Call&)> prepare,
                      const c10::function_ref<bool(Call&)>* shortcut, bool synchronize) {
  try {
    if (log_calls()) log_call(*this);
    check_operands();
    check_memory();
    if (shortcut != nullptr && effect_ == Effect::NONE && (*shortcut)(*this)) {
      return Status::SUCCESS;
    }
    [[maybe_unused]] const target::OnStream on_stream(handle_.GetDevice(), handle_.GetStream());
    const bool recorded = at::hasCallbacks();
    Work work;
    {
      LibraryScope scope(recorded);
      work = effect_ == Effect::WRITES_ZEROS ? zeroing() : prepare(*this);
    }
    if (!work) return Status::SUCCESS;
    if (!synchronize) {
      start(work, recorded);
      return Status::SUCCESS;
    }
    // What fails while the caller waits is the call's failure, not the stream's.
    auto failure = std::make_shared<std::exception_ptr>();
    Work guarded = [work = std::make_shared<Work>(std::move(work)), failure] {
      try {
        (*work)();
      } catch (...) {
        *failure = std::current_exception();
      }
    };
    start(guarded, recorded);
    target::synchronize(handle_.GetDevice(), handle_.GetStream());
    if (*failure) std::rethrow_exception(*failure);
    return Status::SUCCESS;
  } catch (...) {
    std::string reason;
    const Status status = status_of_current_exception(reason);
    log_refusal(*this, status, reason);
    return status;
  }
}

}  // namespace musa::dnn::internal
