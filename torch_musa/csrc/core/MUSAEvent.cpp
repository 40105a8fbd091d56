#include "torch_musa/csrc/core/MUSAEvent.h"

#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace c10::musa {

MUSAEvent::~MUSAEvent() {
  if (!is_created_) {
    return;
  }
  try {
    const MUSAGuard guard(device_index_);
    C10_MUSA_CHECK_WARN(musaEventDestroy(event_));
  } catch (...) {  // the driver is gone at exit, and the event with it
  }
}

void MUSAEvent::create(DeviceIndex device_index) {
  ensure_initialized(device_index);
  const MUSAGuard guard(device_index);
  C10_MUSA_CHECK(musaEventCreateWithFlags(&event_, flags_));
  device_index_ = device_index;
  is_created_ = true;
}

void MUSAEvent::record(const MUSAStream& stream) {
  if (!is_created_) {
    create(stream.device_index());
  }
  TORCH_CHECK(
      device_index_ == stream.device_index(), "Event device musa:", static_cast<int>(device_index_),
      " does not match recording stream's device musa:", static_cast<int>(stream.device_index()));
  const MUSAGuard guard(device_index_);
  C10_MUSA_CHECK(musaEventRecord(event_, stream.stream()));
}

void MUSAEvent::block(const MUSAStream& stream) const {
  if (is_created_) {
    const MUSAGuard guard(stream.device());
    C10_MUSA_CHECK(musaStreamWaitEvent(stream.stream(), event_, 0));
  }
}

bool MUSAEvent::query() const {
  if (!is_created_) {
    return true;
  }
  const musaError_t error = musaEventQuery(event_);
  if (error == musaErrorNotReady) {
    static_cast<void>(musaGetLastError());  // an answer, not an error
    return false;
  }
  C10_MUSA_CHECK(error);
  return true;
}

void MUSAEvent::synchronize() const {
  if (is_created_) {
    C10_MUSA_CHECK(musaEventSynchronize(event_));
  }
}

float MUSAEvent::elapsed_time(const MUSAEvent& end) const {
  TORCH_CHECK(is_created_ && end.is_created_,
              "Both events must be recorded before calculating elapsed time.");
  float milliseconds = 0;
  const MUSAGuard guard(device_index_);
  C10_MUSA_CHECK(musaEventElapsedTime(&milliseconds, event_, end.event_));
  return milliseconds;
}

}  // namespace c10::musa
