#pragma once

#include <c10/core/Stream.h>
#include <c10/util/Exception.h>
#include <musa_runtime.h>

#include <cstdint>
#include <functional>
#include <iosfwd>

namespace c10::musa {

/// A queue of work on one device: c10::Stream that is known to belong to a MUSA device.
///
/// Stream ids: 0 is the device's default stream (the null stream of the runtime); an odd id is a
/// stream of the pool, index and priority packed above the low bit; any other even id is the
/// address of a stream that someone else owns.
class MUSAStream {
 public:
  enum Unchecked { UNCHECKED };

  explicit MUSAStream(Stream stream) : stream_(stream) {
    TORCH_CHECK(stream_.device_type() == DeviceType::PrivateUse1,
                "Expected a stream of a musa device but got one of ", stream_.device());
  }
  MUSAStream(Unchecked /*unused*/, Stream stream) : stream_(stream) {}

  bool operator==(const MUSAStream& other) const noexcept { return unwrap() == other.unwrap(); }
  bool operator!=(const MUSAStream& other) const noexcept { return unwrap() != other.unwrap(); }

  operator musaStream_t() const {
    return stream();
  }  // NOLINT: the implicit conversion is the point
  operator Stream() const { return unwrap(); }  // NOLINT

  DeviceType device_type() const { return DeviceType::PrivateUse1; }
  DeviceIndex device_index() const { return stream_.device_index(); }
  Device device() const { return {DeviceType::PrivateUse1, device_index()}; }
  StreamId id() const { return stream_.id(); }

  /// True once everything enqueued so far has finished.
  bool query() const;
  /// Waits for everything enqueued so far.
  void synchronize() const;
  /// 0 for a normal stream, negative for one that runs ahead of it.
  int priority() const;
  /// Whether work is recorded for a graph (musaStreamBeginCapture) instead of being run.
  bool is_capturing() const { return capture_id() != 0; }
  /// Which capture it takes part in, whether that is still valid or not; 0: none.
  unsigned long long capture_id() const;

  /// The runtime's handle. The null handle means the default stream of the *current* device, so
  /// hold a MUSAGuard.
  musaStream_t stream() const;

  Stream unwrap() const { return stream_; }

  struct StreamData3 pack3() const { return stream_.pack3(); }
  static MUSAStream unpack3(StreamId id, DeviceIndex index, DeviceType type) {
    return MUSAStream(Stream::unpack3(id, index, type));
  }

 private:
  Stream stream_;
};

/// A stream of the device's pool, handed out round-robin. Negative `priority` asks for a
/// high-priority one, -1 as `device` for the current device. Pool streams live as long as the
/// process.
MUSAStream getStreamFromPool(int priority, DeviceIndex device = -1);
MUSAStream getStreamFromPool(bool is_high_priority = false, DeviceIndex device = -1);

/// Wraps a stream made elsewhere, which must outlive its use here.
MUSAStream getStreamFromExternal(musaStream_t stream, DeviceIndex device);

MUSAStream getDefaultMUSAStream(DeviceIndex device = -1);

/// The calling thread's stream on `device` (-1: the current device).
MUSAStream getCurrentMUSAStream(DeviceIndex device = -1);

/// Makes `stream` the calling thread's stream on its own device. The current device stays as it is.
void setCurrentMUSAStream(MUSAStream stream);

std::ostream& operator<<(std::ostream& out, const MUSAStream& stream);

}  // namespace c10::musa

namespace std {
template <>
struct hash<c10::musa::MUSAStream> {
  size_t operator()(const c10::musa::MUSAStream& s) const noexcept {
    return std::hash<c10::Stream>{}(s.unwrap());
  }
};
}  // namespace std
