#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <mudnn.h>

namespace at::musa {

constexpr c10::DeviceType kMUSA = c10::DeviceType::PrivateUse1;

using muTensor = ::musa::dnn::Tensor;
using muHandle = ::musa::dnn::Handle;

/// muDNN's view of `tensor`: address, dtype, sizes and strides. Holds no reference, so `tensor`
/// must outlive the call. A rank-0 tensor becomes {1}. Throws for dtypes that muDNN has not
/// (complex, the wide unsigned ones) and ranks above 8. An undefined tensor gives a
/// default-constructed muTensor, muDNN's way of saying "operand absent".
muTensor CreateMUTensor(const Tensor& tensor);

/// The same from parts, for operands that a kernel has reshaped by hand. Strides count elements;
/// without any, memory is dense.
muTensor CreateMUTensor(void* data, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides = {});

/// The calling thread's handle for the current device, set to the current stream and to
/// torch.backends.mudnn.allow_tf32.
muHandle& GetMudnnHandle();

/// Workspace allocator for the muDNN calls that take one. Memory comes from the caching allocator
/// and goes back to it, in stream order, when the call drops it.
::musa::dnn::MemoryHandler InternalMemAlloc(size_t nbytes);

/// "SUCCESS", "NOT_SUPPORTED", ...
const char* MudnnStatusName(::musa::dnn::Status status);

/// torch.backends.mudnn.allow_tf32.
bool allow_tf32() noexcept;
void set_allow_tf32(bool allowed) noexcept;

/// Throws unless `tensor` is on a musa device; `op` names the caller in the message.
void CheckOnMUSA(const Tensor& tensor, const char* op);

/// NotImplementedError, worded as AT_DISPATCH words it on the CPU, unless `op` has a kernel for
/// `dtype`.
void CheckImplemented(bool implemented, ScalarType dtype, const char* op);

}  // namespace at::musa

/// Throws unless `status` is SUCCESS. muDNN tells the reason, such as an index out of range, only
/// to its log.
#define CHECK_MUDNN_STATUS(status, what)                                                         \
  do {                                                                                           \
    const ::musa::dnn::Status mudnn_status_ = (status);                                          \
    TORCH_CHECK(mudnn_status_ == ::musa::dnn::Status::SUCCESS, "muDNN failed in ", (what), ": ", \
                ::at::musa::MudnnStatusName(mudnn_status_),                                      \
                " (the reason is in muDNN's log, on standard error)");                           \
  } while (0)

/// Hangs a kernel on a DispatchStub of PyTorch. Use it inside namespace at::native, where the stubs
/// live.
#define REGISTER_MUSA_DISPATCH(stub, fn) REGISTER_PRIVATEUSE1_DISPATCH(stub, fn)
