// Copies and fills: every pointer is checked against what the runtime knows of it, because a wrong
// direction that happens to work here would fail on a card.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Capture.h"
#include "Device.h"
#include "Memory.h"
#include "Stream.h"

namespace musa::host {
namespace {

enum class Side { HOST, DEVICE, EITHER };

// Checks one side of a copy against what is known of the pointer and says whether that is memory of
// the host that is not page-locked.
bool check_side(const void* pointer, size_t bytes, Side side) {
  require(pointer != nullptr);
  require(reinterpret_cast<uintptr_t>(pointer) + bytes >= reinterpret_cast<uintptr_t>(pointer));
  const auto block = find_block(pointer);
  // Memory of a device that is not allocated is nobody's: freed, or past the end of a block.
  require(block ? block->holds(pointer, bytes) : !touches_device_addresses(pointer, bytes));
  const bool on_device = block && block->on_device();
  const bool either = side == Side::EITHER || (block && block->kind == Kind::MANAGED);
  require(either || on_device == (side == Side::DEVICE));
  return !block;
}

struct Copy {
  void* dst;
  const void* src;
  size_t bytes;
  bool from_pageable;
  bool to_pageable;
  bool on_host;  // both sides

  void run() const { std::memmove(dst, src, bytes); }
};

// Overlapping ranges are undefined in the API; memmove keeps them harmless here.
Copy check_copy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  const auto checked = [&](Side to, Side from) {
    const bool to_pageable = check_side(dst, bytes, to);
    const bool from_pageable = check_side(src, bytes, from);
    const auto on_host = [](const void* p, bool pageable) {
      return pageable || !find_block(p)->on_device();
    };
    return Copy{dst,         src,
                bytes,       from_pageable,
                to_pageable, on_host(dst, to_pageable) && on_host(src, from_pageable)};
  };
  switch (kind) {
    case musaMemcpyHostToHost:
      return checked(Side::HOST, Side::HOST);
    case musaMemcpyHostToDevice:
      return checked(Side::DEVICE, Side::HOST);
    case musaMemcpyDeviceToHost:
      return checked(Side::HOST, Side::DEVICE);
    case musaMemcpyDeviceToDevice:
      return checked(Side::DEVICE, Side::DEVICE);
    case musaMemcpyDefault:
      return checked(Side::EITHER, Side::EITHER);
  }
  throw Failure{musaErrorInvalidMemcpyDirection};
}

// As CUDA's "API synchronization behavior" has it: memory that is not page-locked goes through a
// buffer of the driver's, so a copy from it returns once it is read and a copy to it when it is
// written.
void copy(const Copy& what, musaStream& stream) {
  if (!stream.queue || stream.capturing.load()) {
    submit(stream, {[what] { what.run(); }, Task::Kind::DEVICE, "memcpy"});
    return;
  }
  if (what.from_pageable && !what.to_pageable) {
    const auto* begin = static_cast<const char*>(what.src);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + what.bytes);
    submit(stream, {[what, staged] { std::memcpy(what.dst, staged->data(), what.bytes); },
                    Task::Kind::DEVICE, "memcpy"});
    return;
  }
  submit(stream, {[what] { what.run(); }, Task::Kind::DEVICE, "memcpy"});
  if (what.to_pageable) synchronize(stream);
}

void fill(void* pointer, int value, size_t bytes, musaStream& stream) {
  if (bytes == 0) return;
  require(pointer != nullptr);
  // A kernel does the filling: pinned host memory is reachable, pageable memory is not.
  const auto block = find_block(pointer);
  require(block && block->holds(pointer, bytes));
  submit(stream, {[=] { std::memset(pointer, value, bytes); }, Task::Kind::DEVICE, "memset"});
}

// The blocking calls wait for the default stream, on which they run. A copy within the device and a
// fill of device memory come back before they are done, as on a card.
bool host_waits(const void* pointer) {
  const auto block = find_block(pointer);
  return !block || !block->on_device();
}

void require_blocking_call_allowed(int device) {
  require_no_unsafe_capture();
  require_not_capturing(*resolve(nullptr, device));
}

}  // namespace
}  // namespace musa::host

using musa::host::api;
using musa::host::check_copy;
using musa::host::current_device;
using musa::host::host_waits;
using musa::host::require;
using musa::host::resolve;

musaError_t musaMemcpyAsync(void* dst, const void* src, size_t bytes, musaMemcpyKind kind,
                            musaStream_t stream) {
  return api([&] {
    const auto target = resolve(stream, current_device());
    require(kind >= musaMemcpyHostToHost && kind <= musaMemcpyDefault,
            musaErrorInvalidMemcpyDirection);
    if (bytes == 0) return;
    musa::host::copy(check_copy(dst, src, bytes, kind), *target);
  });
}

musaError_t musaMemcpy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  musaError_t error = api([&] { musa::host::require_blocking_call_allowed(current_device()); });
  if (error == musaSuccess) error = musaMemcpyAsync(dst, src, bytes, kind, nullptr);
  if (error != musaSuccess || bytes == 0 || (!host_waits(dst) && !host_waits(src))) return error;
  return musaStreamSynchronize(nullptr);
}

musaError_t musaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                size_t bytes, musaStream_t stream) {
  return api([&] {
    const auto target = resolve(stream, current_device());
    musa::host::require_device(dst_device);
    musa::host::require_device(src_device);
    if (bytes == 0) return;
    const auto what = check_copy(dst, src, bytes, musaMemcpyDeviceToDevice);
    require(musa::host::find_block(dst)->device == dst_device &&
            musa::host::find_block(src)->device == src_device);
    musa::host::copy(what, *target);
  });
}

musaError_t musaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                           size_t bytes) {
  const musaError_t error =
      api([&] { musa::host::require_blocking_call_allowed(current_device()); });
  return error != musaSuccess
             ? error
             : musaMemcpyPeerAsync(dst, dst_device, src, src_device, bytes, nullptr);
}

musaError_t musaMemsetAsync(void* pointer, int value, size_t bytes, musaStream_t stream) {
  return api([&] { musa::host::fill(pointer, value, bytes, *resolve(stream, current_device())); });
}

musaError_t musaMemset(void* pointer, int value, size_t bytes) {
  musaError_t error = api([&] { musa::host::require_blocking_call_allowed(current_device()); });
  if (error == musaSuccess) error = musaMemsetAsync(pointer, value, bytes, nullptr);
  if (error != musaSuccess || bytes == 0 || !host_waits(pointer)) return error;
  return musaStreamSynchronize(nullptr);
}
