#include "torch_musa/csrc/aten/utils/Utils.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "torch_musa/csrc/core/FastThreadLocal.h"
#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace at::musa {
namespace {

constexpr std::optional<muTensor::Type> mudnn_type(ScalarType dtype) {
  using Type = muTensor::Type;
  switch (dtype) {
    case ScalarType::Half:
      return Type::HALF;
    case ScalarType::Float:
      return Type::FLOAT;
    case ScalarType::Double:
      return Type::DOUBLE;
    case ScalarType::BFloat16:
      return Type::BFLOAT16;
    case ScalarType::Char:
      return Type::INT8;
    case ScalarType::Short:
      return Type::INT16;
    case ScalarType::Int:
      return Type::INT32;
    case ScalarType::Long:
      return Type::INT64;
    case ScalarType::Byte:
      return Type::UINT8;
    case ScalarType::UInt64:
      return Type::UINT64;
    case ScalarType::Bool:
      return Type::BOOL;
    case ScalarType::QInt8:
      return Type::QINT8;
    case ScalarType::Float8_e5m2:
      return Type::FP8_E5M2;
    case ScalarType::Float8_e4m3fn:
      return Type::FP8_E4M3;
    default:
      return std::nullopt;
  }
}

// Looked up for every operand: a load, where the switch is a jump that few branch predictors hit.
constexpr auto kMudnnTypes = [] {
  std::array<std::optional<muTensor::Type>, static_cast<size_t>(ScalarType::NumOptions)> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = mudnn_type(static_cast<ScalarType>(i));
  return types;
}();

constexpr int64_t kMaxRank = 8;

// Read by every thread for every handle; a relaxed flag is all that a switch between calls needs.
std::atomic<bool>& tf32_flag() {
  static std::atomic<bool> allowed{false};
  return allowed;
}

// The thread's handles by device. A handle carries a stream, so threads cannot share one; a device
// has its own kernels, so neither can devices.
constinit thread_local std::unique_ptr<muHandle>* handles MUSA_FAST_TLS = nullptr;

std::unique_ptr<muHandle>* make_handles() {
  thread_local std::vector<std::unique_ptr<muHandle>> owned(c10::musa::device_count());
  return owned.data();
}

}  // namespace

muTensor CreateMUTensor(void* data, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides) {
  const auto type = kMudnnTypes[static_cast<size_t>(dtype)];
  TORCH_CHECK_NOT_IMPLEMENTED(type.has_value(), "muDNN has no tensors of dtype ", dtype);
  const auto rank = static_cast<int64_t>(sizes.size());
  TORCH_CHECK(rank <= kMaxRank, "muDNN tensors have at most ", kMaxRank,
              " dimensions, got one of sizes ", sizes);
  muTensor out;
  CHECK_MUDNN_STATUS(out.SetType(*type), "Tensor::SetType");
  CHECK_MUDNN_STATUS(out.SetAddr(data), "Tensor::SetAddr");
  if (rank == 0) {
    CHECK_MUDNN_STATUS(out.SetNdInfo({1}), "Tensor::SetNdInfo");
  } else if (strides.empty()) {
    CHECK_MUDNN_STATUS(out.SetNdInfo(static_cast<int>(rank), sizes.data()), "Tensor::SetNdInfo");
  } else {
    CHECK_MUDNN_STATUS(out.SetNdInfo(static_cast<int>(rank), sizes.data(), strides.data()),
                       "Tensor::SetNdInfo");
  }
  return out;
}

muTensor CreateMUTensor(const Tensor& tensor) {
  if (!tensor.defined()) {
    return {};
  }
  CheckOnMUSA(tensor, "CreateMUTensor");
  // The pointer goes to operands of both kinds; copy-on-write storage must be materialized for the
  // outputs.
  return CreateMUTensor(tensor.data_ptr(), tensor.scalar_type(), tensor.sizes(), tensor.strides());
}

muHandle& GetMudnnHandle() {
  if (C10_UNLIKELY(handles == nullptr)) handles = make_handles();
  const c10::DeviceIndex device = c10::musa::current_device();
  auto& handle = handles[device];
  if (handle == nullptr) {
    c10::musa::ensure_initialized(device);
    handle = std::make_unique<muHandle>(device);
  }
  // Asking is a load, setting a call; most calls find it as they left it.
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(device).stream();
  if (handle->GetStream() != stream) {
    CHECK_MUDNN_STATUS(handle->SetStream(stream), "Handle::SetStream");
  }
  CHECK_MUDNN_STATUS(handle->SetAllowTF32(allow_tf32()), "Handle::SetAllowTF32");
  return *handle;
}

::musa::dnn::MemoryHandler InternalMemAlloc(size_t nbytes) {
  return {c10::musa::MUSACachingAllocator::raw_alloc(nbytes),
          &c10::musa::MUSACachingAllocator::raw_delete};
}

namespace {

// EXECUTION_FAILED, and what broke the device where that is why: work that ran earlier, often.
const char* execution_failed() {
  const musaError_t error = musaPeekAtLastError();
  if (error == musaSuccess) return "EXECUTION_FAILED";
  thread_local std::string text;
  text = c10::str("EXECUTION_FAILED, for the device is broken: ", musaGetErrorString(error), " (",
                  musaGetErrorName(error), ")");
  return text.c_str();
}

}  // namespace

const char* MudnnStatusName(::musa::dnn::Status status) {
  using Status = ::musa::dnn::Status;
  switch (status) {
    case Status::SUCCESS:
      return "SUCCESS";
    case Status::INVALID_PARAMETER:
      return "INVALID_PARAMETER";
    case Status::NOT_INITIALIZED:
      return "NOT_INITIALIZED";
    case Status::ALLOC_FAILED:
      return "ALLOC_FAILED";
    case Status::NOT_SUPPORTED:
      return "NOT_SUPPORTED";
    case Status::INTERNAL_ERROR:
      return "INTERNAL_ERROR";
    case Status::ARCH_MISMATCH:
      return "ARCH_MISMATCH";
    case Status::EXECUTION_FAILED:
      return execution_failed();
  }
  return "an unknown status";
}

void CheckImplemented(bool implemented, ScalarType dtype, const char* op) {
  TORCH_CHECK_NOT_IMPLEMENTED(implemented, '"', op, "\" not implemented for '", toString(dtype),
                              "'");
}

bool allow_tf32() noexcept { return tf32_flag().load(std::memory_order_relaxed); }

void set_allow_tf32(bool allowed) noexcept {
  tf32_flag().store(allowed, std::memory_order_relaxed);
}

void CheckOnMUSA(const Tensor& tensor, const char* op) {
  TORCH_CHECK(tensor.device().type() == kMUSA, op,
              " expects a tensor on a musa device, got one on ", tensor.device());
}

}  // namespace at::musa
