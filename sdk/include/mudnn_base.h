// muDNN: status, tensor, handle, memory. Every call returns a Status; no exception leaves muDNN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "musa_runtime_api.h"

#define MUDNN_VERSION 3300
#define MUDNN_API __attribute__((visibility("default")))

namespace musa::dnn {

enum class Status {
  SUCCESS = 0,
  INVALID_PARAMETER,
  NOT_INITIALIZED,
  ALLOC_FAILED,
  NOT_SUPPORTED,
  INTERNAL_ERROR,
  ARCH_MISMATCH,
  EXECUTION_FAILED,
};

// Whether a class that multiplies may use the tensor cores.
enum class ComputeMode { SCALAR, TENSOR };

// Scratch memory comes from the caller: calls that need it take a MemoryMaintainer as the last
// argument.
using MemoryHandler = std::unique_ptr<void, std::function<void(void*)>>;
using MemoryMaintainer = std::function<MemoryHandler(size_t)>;

MUDNN_API size_t GetVersion();

namespace detail {
struct TensorAccess;

// A scalar parameter remembers the overload that set it: an integral tensor reads it as int64.
struct Number {
  double as_double = 0;
  int64_t as_int = 0;
  bool integral = true;

  void set(double value) {
    as_double = value;
    as_int = 0;
    integral = false;
  }
  void set(int64_t value) {
    as_double = static_cast<double>(value);
    as_int = value;
    integral = true;
  }
};
}  // namespace detail

// Describes an operand: type, address, sizes and strides (in elements). It does not own memory.
// A default-constructed Tensor means "operand absent".
class MUDNN_API Tensor {
 public:
  enum class Type {
    HALF,
    FLOAT,
    DOUBLE,
    BFLOAT16,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT64,
    BOOL,
    QINT8,
    FP8_E5M2,
    FP8_E4M3,
  };
  enum class Format { NCW, NCHW, NHWC, NCDHW, NDHWC, DHWCN };

  static constexpr int kMaxRank = 8;

  Tensor() {}  // not "= default": `const Tensor absent;` may be written

  Status SetType(Type type) {
    if (type < Type::HALF || type > Type::FP8_E4M3) return Status::INVALID_PARAMETER;
    type_ = type;
    return Status::SUCCESS;
  }
  Status SetAddr(void* address) {
    address_ = address;
    return Status::SUCCESS;
  }
  Status SetFormat(Format format);
  Status SetQuantizationInfo(float scale, unsigned int zero_point = 0);

  // Sizes in memory order and, unless they are contiguous, strides. INVALID_PARAMETER for rank 0
  // (a scalar has shape {1}), rank over 8 and negative sizes.
  Status SetNdInfo(int rank, const int64_t* dims);
  Status SetNdInfo(int rank, const int64_t* dims, const int64_t* strides);
  Status SetNdInfo(std::initializer_list<int64_t> dims);
  Status SetNdInfo(std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides);

  Status GetNdInfo(std::vector<int64_t>& dims) const;
  Status GetNdInfo(std::vector<int64_t>& dims, std::vector<int64_t>& strides) const;

 private:
  friend struct detail::TensorAccess;

  void* address_ = nullptr;
  // Of the first rank_ dimensions; nobody asks for the others, and every operand is described anew.
  int64_t dims_[kMaxRank];
  int64_t strides_[kMaxRank];
  int rank_ = 0;
  bool shaped_ = false;  // SetNdInfo was called, with whatever outcome
  Type type_ = Type::FLOAT;
  Format format_ = Format::NCHW;
  float scale_ = 1;
  unsigned int zero_point_ = 0;
};

// A device, a stream and the numeric switches. TF32 is on by default, as in the library.
class MUDNN_API Handle {
 public:
  Handle();  // of the current device
  explicit Handle(int device);

  Status SetStream(musaStream_t stream);
  musaStream_t GetStream() const { return stream_; }
  Status SetAllowTF32(bool allow);
  bool GetAllowTF32() const { return allow_tf32_; }
  int GetDevice() const { return device_; }

 private:
  int device_;
  musaStream_t stream_ = nullptr;
  bool allow_tf32_ = true;
};

}  // namespace musa::dnn
