#include "torch_musa/csrc/core/MUSAStream.h"

#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <ostream>
#include <utility>
#include <vector>

#include "torch_musa/csrc/core/FastThreadLocal.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace c10::musa {
namespace {

// Streams are a scarce resource of the driver, so users share a fixed pool per device and priority.
constexpr size_t kStreamsPerPool = 32;
constexpr size_t kMaxDevices = std::numeric_limits<DeviceIndex>::max() + 1;
constexpr size_t kPriorities = 2;  // level 0: priority 0, level 1: the device's highest

// Bit layout of the id of a pool stream (see MUSAStream): [index | level (1 bit) | 1].
constexpr StreamId kPoolBit = 1;

StreamId pool_stream_id(size_t level, size_t index) {
  return static_cast<StreamId>((index << 2) | (level << 1)) | kPoolBit;
}
bool is_pool_stream(StreamId id) { return (id & kPoolBit) != 0; }
size_t level_of(StreamId id) { return (id >> 1) & 1; }
size_t index_of(StreamId id) { return static_cast<size_t>(id) >> 2; }

struct DevicePool {
  std::once_flag created;
  std::array<std::array<musaStream_t, kStreamsPerPool>, kPriorities> streams{};
  std::array<std::atomic<uint32_t>, kPriorities> next{};
  int high_priority = 0;
};

std::vector<DevicePool>& pools() {
  // Never destroyed: streams are used by destructors of tensors that live until the process ends.
  static auto* all = new std::vector<DevicePool>(device_count());
  return *all;
}

DevicePool& device_pool(DeviceIndex device) {
  check_device_index(device);
  DevicePool& pool = pools()[device];
  std::call_once(pool.created, [&] {
    ensure_initialized(device);
    const MUSAGuard guard(device);
    int least = 0;
    C10_MUSA_CHECK(musaDeviceGetStreamPriorityRange(&least, &pool.high_priority));
    for (size_t level = 0; level < kPriorities; ++level) {
      for (musaStream_t& stream : pool.streams[level]) {
        C10_MUSA_CHECK(musaStreamCreateWithPriority(&stream, musaStreamNonBlocking,
                                                    level == 0 ? 0 : pool.high_priority));
      }
    }
  });
  return pool;
}

MUSAStream stream_for(DeviceIndex device, StreamId id) {
  return MUSAStream(MUSAStream::UNCHECKED,
                    Stream(Stream::UNSAFE, Device(DeviceType::PrivateUse1, device), id));
}

// The thread's stream by device. Null until the thread chooses one: zero, the default one, on each.
constinit thread_local StreamId* current_streams MUSA_FAST_TLS = nullptr;

struct FreesCurrentStreams {
  ~FreesCurrentStreams() { delete[] std::exchange(current_streams, nullptr); }
};

StreamId* own_current_streams() {
  if (current_streams == nullptr) {
    current_streams = new StreamId[kMaxDevices]{};
    // Has nothing to do for a destructor that chooses later yet: those numbers are never freed.
    thread_local const FreesCurrentStreams at_the_threads_end;
  }
  return current_streams;
}

}  // namespace

musaStream_t MUSAStream::stream() const {
  const StreamId id = stream_.id();
  if (id == 0) {
    return nullptr;
  }
  if (!is_pool_stream(id)) {
    return reinterpret_cast<musaStream_t>(id);
  }
  TORCH_CHECK(index_of(id) < kStreamsPerPool, "Invalid musa stream id ", id);
  return device_pool(device_index()).streams[level_of(id)][index_of(id)];
}

bool MUSAStream::query() const {
  const MUSAGuard guard(device());
  const musaError_t error = musaStreamQuery(stream());
  if (error == musaErrorNotReady) {
    static_cast<void>(musaGetLastError());  // an answer, not an error
    return false;
  }
  C10_MUSA_CHECK(error);
  return true;
}

void MUSAStream::synchronize() const {
  const MUSAGuard guard(device());
  C10_MUSA_CHECK(musaStreamSynchronize(stream()));
}

int MUSAStream::priority() const {
  const MUSAGuard guard(device());
  int priority = 0;
  C10_MUSA_CHECK(musaStreamGetPriority(stream(), &priority));
  return priority;
}

unsigned long long MUSAStream::capture_id() const {
  const MUSAGuard guard(device());
  auto status = musaStreamCaptureStatusNone;
  unsigned long long id = 0;
  C10_MUSA_CHECK(musaStreamGetCaptureInfo(stream(), &status, &id));
  return status == musaStreamCaptureStatusNone ? 0 : id;
}

MUSAStream getStreamFromPool(int priority, DeviceIndex device) {
  device = resolve_device_index(device);
  DevicePool& pool = device_pool(device);
  const size_t level = priority < 0 ? 1 : 0;
  const uint32_t ticket = pool.next[level].fetch_add(1, std::memory_order_relaxed);
  return stream_for(device, pool_stream_id(level, ticket % kStreamsPerPool));
}

MUSAStream getStreamFromPool(bool is_high_priority, DeviceIndex device) {
  return getStreamFromPool(is_high_priority ? -1 : 0, device);
}

MUSAStream getStreamFromExternal(musaStream_t stream, DeviceIndex device) {
  const auto id = static_cast<StreamId>(reinterpret_cast<intptr_t>(stream));
  TORCH_CHECK((id & kPoolBit) == 0, "Not the address of a musa stream: ", id);
  return stream_for(resolve_device_index(device), id);
}

MUSAStream getDefaultMUSAStream(DeviceIndex device) {
  return stream_for(resolve_device_index(device), 0);
}

MUSAStream getCurrentMUSAStream(DeviceIndex device) {
  device = resolve_device_index(device);
  return stream_for(device, current_streams == nullptr ? 0 : current_streams[device]);
}

void setCurrentMUSAStream(MUSAStream stream) {
  check_device_index(stream.device_index());
  own_current_streams()[stream.device_index()] = stream.id();
}

std::ostream& operator<<(std::ostream& out, const MUSAStream& stream) {
  return out << stream.unwrap();
}

}  // namespace c10::musa
