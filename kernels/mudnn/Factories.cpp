// Where device memory comes from: empty tensors, and what needs only their memory.

#include <torch_musa/ops/_efficientzerotensor_native.h>
#include <torch_musa/ops/empty_native.h>
#include <torch_musa/ops/empty_strided_native.h>
#include <torch_musa/ops/equal_native.h>
#include <torch_musa/ops/record_stream_native.h>
#include <torch_musa/ops/zero_native.h>

#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/eq.h>
#include <musa_runtime.h>

#include "torch_musa/csrc/aten/EmptyTensor.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

using c10::musa::getCurrentMUSAStream;
using c10::musa::MUSAGuard;
using c10::musa::OptionalMUSAGuard;

constexpr c10::DispatchKeySet kMUSAKeys(c10::DispatchKey::PrivateUse1);

/// The device that a factory call asks for; "musa" without an index is the current one.
Device target_device(std::optional<Device> device) {
  const Device wanted = device.value_or(Device(kMUSA));
  TORCH_CHECK(wanted.type() == kMUSA, "Expected a musa device but got ", wanted);
  return {kMUSA, c10::musa::resolve_device_index(wanted.index())};
}

/// The allocator asks for the current device. Most calls come under a guard of the operator's, and
/// then there is nothing to put back.
void make_current(Device device, OptionalMUSAGuard& guard) {
  if (C10_UNLIKELY(device.index() != c10::musa::current_device())) guard.set_index(device.index());
}

void check_factory_options(std::optional<Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout_or_default(layout) == kStrided, "Layout ", *layout,
                              " is not available on the musa device");
  TORCH_CHECK(!pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
}

/// torch.use_deterministic_algorithms also promises that reading unwritten memory gives the same
/// values every time.
Tensor deterministic(Tensor tensor) {
  const auto& context = at::globalContext();
  if (C10_UNLIKELY(context.deterministicAlgorithms() &&
                   context.deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

// In both its callers: one has the options packed and one unpacked, and to change that costs more
// than the checks.
C10_ALWAYS_INLINE Tensor make_empty(IntArrayRef size, ScalarType dtype,
                                    std::optional<Device> device,
                                    std::optional<MemoryFormat> memory_format) {
  OptionalMUSAGuard guard;
  make_current(target_device(device), guard);
  return deterministic(at::detail::empty_generic(size, c10::musa::MUSACachingAllocator::get(),
                                                 kMUSAKeys, dtype, memory_format));
}

}  // namespace

Tensor empty_musa(IntArrayRef size, const TensorOptions& options) {
  check_factory_options(options.layout_opt(), options.pinned_memory_opt());
  return make_empty(size, typeMetaToScalarType(options.dtype()), options.device_opt(),
                    options.memory_format_opt());
}

Tensor empty_strided_musa(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  return EmptyStrided(size, stride, optTypeMetaToScalarType(options.dtype_opt()),
                      options.layout_opt(), options.device_opt(), options.pinned_memory_opt());
}

Tensor EmptyMemoryFormat(IntArrayRef size, std::optional<ScalarType> dtype,
                         std::optional<Layout> layout, std::optional<Device> device,
                         std::optional<bool> pin_memory,
                         std::optional<MemoryFormat> memory_format) {
  check_factory_options(layout, pin_memory);
  return make_empty(size, dtype_or_default(dtype), device, memory_format);
}

Tensor EmptyStrided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  check_factory_options(layout, pin_memory);
  OptionalMUSAGuard guard;
  make_current(target_device(device), guard);
  return deterministic(at::detail::empty_strided_generic(
      size, stride, c10::musa::MUSACachingAllocator::get(), kMUSAKeys, dtype_or_default(dtype)));
}

// A tensor of zeros without memory, which automatic differentiation passes around for absent
// gradients.
Tensor EfficientZeroTensor(IntArrayRef size, std::optional<ScalarType> dtype,
                           std::optional<Layout> layout, std::optional<Device> device,
                           std::optional<bool> pin_memory) {
  check_factory_options(layout, pin_memory);
  at::native::ZeroTensorAllocator allocator(target_device(device));
  return at::detail::empty_generic(size, &allocator,
                                   kMUSAKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
                                   dtype_or_default(dtype), std::nullopt);
}

Tensor& Zero_(Tensor& self) {
  if (self.numel() == 0) {
    return self;
  }
  const MUSAGuard guard(self.device());
  // All bits zero is zero in every dtype, so bytes will do where there are no gaps.
  if (self.is_non_overlapping_and_dense()) {
    C10_MUSA_CHECK(musaMemsetAsync(self.mutable_data_ptr(), 0, self.nbytes(),
                                   getCurrentMUSAStream().stream()));
    return self;
  }
  return self.fill_(0);
}

bool Equal(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  if (self.sizes() != other.sizes()) {
    return false;
  }
  return self.numel() == 0 || at::eq(self, other).all().item<bool>();
}

void RecordStream(Tensor& self, Stream stream) {
  c10::musa::MUSACachingAllocator::recordStream(self.storage().data_ptr(),
                                                c10::musa::MUSAStream(stream));
}

}  // namespace at::musa
