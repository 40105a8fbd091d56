#include "torch_musa/csrc/core/MUSAHooks.h"

#include <c10/core/Storage.h>
#include <musa_runtime.h>

#include <algorithm>
#include <utility>

#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"
#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSACachingHostAllocator.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {

void MUSAHooks::init() const {
  if (c10::musa::device_count() > 0) {
    c10::musa::ensure_initialized(c10::musa::current_device());
  }
}

bool MUSAHooks::isAvailable() const { return c10::musa::device_count() > 0; }

bool MUSAHooks::hasPrimaryContext(DeviceIndex device_index) const {
  c10::musa::check_device_index(device_index);
  return c10::musa::is_initialized(device_index);
}

DeviceIndex MUSAHooks::deviceCount() const { return c10::musa::device_count(); }
DeviceIndex MUSAHooks::getCurrentDevice() const { return c10::musa::current_device(); }
void MUSAHooks::setCurrentDevice(DeviceIndex device) const { c10::musa::set_device(device); }
DeviceIndex MUSAHooks::exchangeDevice(DeviceIndex device) const {
  return c10::musa::exchange_device(device);
}
DeviceIndex MUSAHooks::maybeExchangeDevice(DeviceIndex device) const {
  return c10::musa::maybe_exchange_device(device);
}

const Generator& MUSAHooks::getDefaultGenerator(DeviceIndex device_index) const {
  return detail::getDefaultMUSAGenerator(device_index);
}

Generator MUSAHooks::getNewGenerator(DeviceIndex device_index) const {
  return detail::createMUSAGenerator(device_index);
}

Device MUSAHooks::getDeviceFromPtr(void* data) const {
  musaPointerAttributes attributes{};
  C10_MUSA_CHECK(musaPointerGetAttributes(&attributes, data));
  TORCH_CHECK(attributes.type == musaMemoryTypeDevice || attributes.type == musaMemoryTypeManaged,
              "The specified pointer resides on host memory and is not registered with any MUSA "
              "device.");
  return {DeviceType::PrivateUse1, static_cast<DeviceIndex>(attributes.device)};
}

bool MUSAHooks::isPinnedPtr(const void* data) const { return musa::isPinnedPtr(data); }

Allocator* MUSAHooks::getPinnedMemoryAllocator() const { return getMUSAPinnedMemoryAllocator(); }

void MUSAHooks::resizePrivateUse1Bytes(const c10::Storage& storage, size_t new_bytes) const {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
  const c10::musa::MUSAGuard guard(storage.device());
  DataPtr data = c10::musa::MUSACachingAllocator::get()->allocate(new_bytes);
  const size_t kept = std::min(new_bytes, impl->nbytes());
  if (kept > 0) {
    C10_MUSA_CHECK(musaMemcpyAsync(data.get(), impl->data(), kept, musaMemcpyDeviceToDevice,
                                   c10::musa::getCurrentMUSAStream().stream()));
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(new_bytes);
}

namespace {
// PyTorch keeps the pointer until the process ends, destructors of static tensors included: leak
// it.
[[maybe_unused]] const bool registered = [] {
  RegisterPrivateUse1HooksInterface(new MUSAHooks());
  return true;
}();
}  // namespace

}  // namespace at::musa
