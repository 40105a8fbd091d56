// An ATen tensor's copy in device memory, with the muDNN descriptor of it.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "check.h"
#include "mudnn.h"
#include "musa_runtime_api.h"

namespace check {

inline musa::dnn::Tensor::Type mudnn_type(at::ScalarType type) {
  using Type = musa::dnn::Tensor::Type;
  switch (type) {
    case at::kHalf:
      return Type::HALF;
    case at::kFloat:
      return Type::FLOAT;
    case at::kDouble:
      return Type::DOUBLE;
    case at::kBFloat16:
      return Type::BFLOAT16;
    case at::kChar:
      return Type::INT8;
    case at::kShort:
      return Type::INT16;
    case at::kInt:
      return Type::INT32;
    case at::kLong:
      return Type::INT64;
    case at::kByte:
      return Type::UINT8;
    case at::kUInt64:
      return Type::UINT64;
    case at::kBool:
      return Type::BOOL;
    default:
      fail(__FILE__, __LINE__, "no muDNN type for this dtype");
  }
}

// Takes over sizes, strides and the whole storage, so that views stay views.
class DeviceTensor {
 public:
  explicit DeviceTensor(const at::Tensor& host, int device = 0) : host_(host) {
    CHECK_EQ(musaSetDevice(device), musaSuccess);
    CHECK_EQ(musaMalloc(&memory_, std::max<size_t>(host.storage().nbytes(), 1)), musaSuccess);
    CHECK_EQ(musaSetDevice(0), musaSuccess);
    CHECK_EQ(
        musaMemcpy(memory_, host.storage().data(), host.storage().nbytes(), musaMemcpyHostToDevice),
        musaSuccess);
    (void)desc.SetType(mudnn_type(host.scalar_type()));
    (void)desc.SetAddr(static_cast<char*>(memory_) + host.storage_offset() * host.element_size());
    (void)desc.SetNdInfo(static_cast<int>(host.dim()), host.sizes().data(), host.strides().data());
  }
  ~DeviceTensor() { (void)musaFree(memory_); }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  // What is in device memory now, laid out as the original.
  at::Tensor read() const {
    at::Tensor copy = at::empty({0}, host_.options());
    copy.set_(c10::Storage(c10::Storage::use_byte_size_t(), host_.storage().nbytes(),
                           host_.storage().allocator()->allocate(host_.storage().nbytes()), nullptr,
                           false),
              host_.storage_offset(), host_.sizes(), host_.strides());
    CHECK_EQ(musaMemcpy(copy.storage().mutable_data(), memory_, host_.storage().nbytes(),
                        musaMemcpyDeviceToHost),
             musaSuccess);
    return copy;
  }

  void* address() const { return memory_; }

  operator musa::dnn::Tensor&() { return desc; }

  musa::dnn::Tensor desc;

 private:
  at::Tensor host_;
  void* memory_ = nullptr;
};

#define CHECK_STATUS(call, expected) CHECK_EQ((call), musa::dnn::Status::expected)
#define CHECK_OK(call) CHECK_STATUS(call, SUCCESS)

// No call of the stand-in needs scratch memory, so none is handed out.
inline musa::dnn::MemoryHandler no_memory(size_t) { return {}; }

inline void check_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance,
                        const char* what, const char* file, int line) {
  if (!actual.sizes().equals(expected.sizes())) fail(file, line, std::string(what) + ": shape");
  const at::Tensor a = actual.to(at::kDouble);
  const at::Tensor e = expected.to(at::kDouble);
  if (!a.allclose(e, tolerance, tolerance, /*equal_nan=*/true)) {
    std::ostringstream out;
    out << what << ": values differ by up to " << (a - e).abs().max().item<double>();
    fail(file, line, out.str());
  }
}

#define CHECK_CLOSE(actual, expected, tolerance) \
  check::check_close((actual), (expected), (tolerance), #actual, __FILE__, __LINE__)

}  // namespace check
