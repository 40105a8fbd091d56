#include "torch_musa/csrc/core/impl/MUSAGuardImpl.h"

#include <musa_runtime.h>

#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace c10::musa::impl {
namespace {

Device musa_device(DeviceIndex index) { return {DeviceType::PrivateUse1, index}; }

unsigned int event_flags(EventFlag flag) {
  switch (flag) {
    case EventFlag::PYTORCH_DEFAULT:
      return musaEventDisableTiming;
    case EventFlag::BACKEND_DEFAULT:
      return musaEventDefault;
    default:
      TORCH_CHECK(false, "Unknown event flag");
  }
}

}  // namespace

MUSAGuardImpl::MUSAGuardImpl(DeviceType type) {
  TORCH_CHECK(type == DeviceType::PrivateUse1, "MUSAGuardImpl expects a musa device but got ",
              type);
}

Device MUSAGuardImpl::exchangeDevice(Device device) const {
  TORCH_CHECK(device.type() == DeviceType::PrivateUse1, "Expected a musa device but got ", device);
  const DeviceIndex index = device.index();  // -1: the current one
  return musa_device(index == -1 ? current_device() : exchange_device(index));
}

Device MUSAGuardImpl::getDevice() const { return musa_device(current_device()); }

void MUSAGuardImpl::setDevice(Device device) const {
  TORCH_CHECK(device.type() == DeviceType::PrivateUse1, "Expected a musa device but got ", device);
  const musaError_t error = musaSetDevice(resolve_device_index(device.index()));
  if (C10_LIKELY(error == musaSuccess)) return;
  // Autograd asks this in its own threads, before each task of theirs and outside of what hands
  // exceptions over: one from here ends the process. So of a device that broke before, which is
  // what no musaGetLastError takes away, the next call tells that does something on it.
  static_cast<void>(musaGetLastError());
  if (musaPeekAtLastError() == musaSuccess) C10_MUSA_CHECK(error);
}

void MUSAGuardImpl::uncheckedSetDevice(Device device) const noexcept {
  // Guards end here, and most of them have changed nothing: asking is cheaper than setting.
  int current = -1;
  if (musaGetDevice(&current) == musaSuccess && current == device.index()) return;
  if (musaSetDevice(device.index()) != musaSuccess) {
    static_cast<void>(musaGetLastError());  // runs in destructors: nobody could catch it
  }
}

DeviceIndex MUSAGuardImpl::deviceCount() const noexcept { return device_count(); }

#if MUSA_HAS_DEVICE_CAPABILITY
DeviceCapability MUSAGuardImpl::getDeviceCapability(Device /*device*/) const {
  DeviceCapability capability;
  // Memory and copies are untyped; conversions between the quantized types are not offered.
  auto& types = capability.capability_data.supported_scalar_types;
  types.has_QInt8 = 0;
  types.has_QUInt8 = 0;
  types.has_QInt32 = 0;
  types.has_QUInt4x2 = 0;
  types.has_QUInt2x4 = 0;
  return capability;
}
#endif

Stream MUSAGuardImpl::getStream(Device device) const {
  return getCurrentMUSAStream(device.index()).unwrap();
}

Stream MUSAGuardImpl::getDefaultStream(Device device) const {
  return getDefaultMUSAStream(device.index()).unwrap();
}

Stream MUSAGuardImpl::getStreamFromGlobalPool(Device device, bool is_high_priority) const {
  return getStreamFromPool(is_high_priority, device.index()).unwrap();
}

Stream MUSAGuardImpl::getNewStream(Device device, int priority) const {
  return getStreamFromPool(priority, device.index()).unwrap();
}

Stream MUSAGuardImpl::exchangeStream(Stream stream) const {
  const MUSAStream previous = getCurrentMUSAStream(stream.device_index());
  setCurrentMUSAStream(MUSAStream(stream));
  return previous.unwrap();
}

bool MUSAGuardImpl::queryStream(const Stream& stream) const { return MUSAStream(stream).query(); }

void MUSAGuardImpl::synchronizeStream(const Stream& stream) const {
  MUSAStream(stream).synchronize();
}

void* MUSAGuardImpl::getStreamNativeHandle(const Stream stream) const {
  return MUSAStream(stream).stream();
}

bool MUSAGuardImpl::isStreamCapturing(const Stream& stream) const {
  return MUSAStream(stream).is_capturing();
}

void MUSAGuardImpl::record(void** event, const Stream& stream, const DeviceIndex device_index,
                           const EventFlag flag) const {
  TORCH_CHECK(device_index == -1 || device_index == stream.device_index(), "Event device index ",
              static_cast<int>(device_index), " does not match recording stream's device index ",
              static_cast<int>(stream.device_index()), ".");
  const MUSAStream musa_stream(stream);
  const MUSAGuard guard(musa_stream.device());
  auto native = static_cast<musaEvent_t>(*event);
  if (native == nullptr) {
    ensure_initialized(musa_stream.device_index());
    C10_MUSA_CHECK(musaEventCreateWithFlags(&native, event_flags(flag)));
    *event = native;
  }
  C10_MUSA_CHECK(musaEventRecord(native, musa_stream.stream()));
}

void MUSAGuardImpl::block(void* event, const Stream& stream) const {
  if (event == nullptr) {
    return;
  }
  const MUSAStream musa_stream(stream);
  const MUSAGuard guard(musa_stream.device());
  C10_MUSA_CHECK(musaStreamWaitEvent(musa_stream.stream(), static_cast<musaEvent_t>(event), 0));
}

bool MUSAGuardImpl::queryEvent(void* event) const {
  if (event == nullptr) {
    return true;
  }
  const musaError_t error = musaEventQuery(static_cast<musaEvent_t>(event));
  if (error == musaErrorNotReady) {
    static_cast<void>(musaGetLastError());  // an answer, not an error
    return false;
  }
  C10_MUSA_CHECK(error);
  return true;
}

void MUSAGuardImpl::synchronizeEvent(void* event) const {
  if (event != nullptr) {
    C10_MUSA_CHECK(musaEventSynchronize(static_cast<musaEvent_t>(event)));
  }
}

double MUSAGuardImpl::elapsedTime(void* start, void* end, const DeviceIndex device_index) const {
  TORCH_CHECK(start != nullptr && end != nullptr,
              "Both events must be recorded before calculating elapsed time.");
  const MUSAGuard guard(device_index);
  float milliseconds = 0;
  C10_MUSA_CHECK(musaEventElapsedTime(&milliseconds, static_cast<musaEvent_t>(start),
                                      static_cast<musaEvent_t>(end)));
  return milliseconds;
}

void MUSAGuardImpl::destroyEvent(void* event, const DeviceIndex device_index) const noexcept {
  if (event == nullptr) {
    return;
  }
  try {
    const MUSAGuard guard(device_index);
    C10_MUSA_CHECK_WARN(musaEventDestroy(static_cast<musaEvent_t>(event)));
  } catch (...) {  // the driver is gone at exit, and the event with it
  }
}

void MUSAGuardImpl::synchronizeDevice(const DeviceIndex device_index) const {
  const MUSAGuard guard(resolve_device_index(device_index));
  device_synchronize();
}

void MUSAGuardImpl::recordDataPtrOnStream(const DataPtr& data_ptr, const Stream& stream) const {
  MUSACachingAllocator::recordStream(data_ptr, MUSAStream(stream));
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, MUSAGuardImpl)

}  // namespace c10::musa::impl
