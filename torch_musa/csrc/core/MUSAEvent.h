#pragma once

#include <utility>

#include "torch_musa/csrc/core/MUSAStream.h"

namespace c10::musa {

/// A marker in a stream's queue. The runtime's event is made on the first record, on the stream's
/// device. Movable only.
class MUSAEvent {
 public:
  /// `flags` as musaEventCreateWithFlags takes them. Without timing by default: cheaper, and what
  /// dependencies need.
  explicit MUSAEvent(unsigned int flags = musaEventDisableTiming) noexcept : flags_(flags) {}
  ~MUSAEvent();
  MUSAEvent(const MUSAEvent&) = delete;
  MUSAEvent& operator=(const MUSAEvent&) = delete;
  MUSAEvent(MUSAEvent&& other) noexcept { swap(other); }
  MUSAEvent& operator=(MUSAEvent&& other) noexcept {
    swap(other);
    return *this;
  }

  bool isCreated() const { return is_created_; }
  DeviceIndex device_index() const { return device_index_; }
  musaEvent_t event() const { return event_; }

  void record() { record(getCurrentMUSAStream()); }
  void record(const MUSAStream& stream);
  /// Makes later work on `stream` wait for the event; nothing when it was never recorded.
  void block(const MUSAStream& stream) const;
  bool query() const;
  void synchronize() const;
  /// Milliseconds from this event to `end`. Both must have been recorded with timing and have
  /// completed.
  float elapsed_time(const MUSAEvent& end) const;

 private:
  void create(DeviceIndex device_index);
  void swap(MUSAEvent& other) noexcept {
    std::swap(flags_, other.flags_);
    std::swap(is_created_, other.is_created_);
    std::swap(device_index_, other.device_index_);
    std::swap(event_, other.event_);
  }

  unsigned int flags_ = musaEventDisableTiming;
  bool is_created_ = false;
  DeviceIndex device_index_ = -1;
  musaEvent_t event_ = nullptr;
};

}  // namespace c10::musa
